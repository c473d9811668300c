package bench

import (
	"sync"
	"time"

	"github.com/glycerine/gosimnet"
)

// limited is a network whose links have a rate, a queue and loss.
func limited(loss float64) gosimnet.SimNetConfig {
	cfg := quiet()
	cfg.Link.BitsPerSecond, cfg.Link.QueueBytes, cfg.Link.Loss = gosimnet.Mbps100, 64<<10, loss
	return cfg
}

// LimitedStream tells what it costs a stream that its link has a rate, a queue and loss, the loss so rare that its
// time-outs do not count.
func LimitedStream() Work {
	return Work{
		Name: "limited link, stream ping-pong", Per: "round trip", Times: 20_000, Shown: CPUTime,
		Contenders: []Contender{
			{sim + ", plain", streamPingPong(simulated(sim, quiet()))},
			{sim + ", rate, queue, 0.01 % loss", streamPingPong(simulated(sim, limited(1e-4)))},
		},
	}
}

// LimitedDatagrams tells what it costs datagrams.
func LimitedDatagrams() Work {
	return Work{
		Name: "limited link, UDP one way", Per: "datagram", Times: 30_000, Shown: CPUTime,
		Contenders: []Contender{
			{sim + ", plain", queueing(simulatedDatagrams(sim, quiet()))},
			{sim + ", rate, queue, 1 % loss", queueing(simulatedDatagrams(sim, limited(0.01)))},
		},
	}
}

// queueing sends now faster than a link of 100 Mbit/s lets datagrams leave, and now slower.
func queueing(p datagrams) func(n int) Sample {
	return func(n int) (s Sample) {
		p.open(2, func(ports []port) {
			var reader sync.WaitGroup
			reader.Go(ports[1].drain)
			s = measure(n, func() {
				buf := make([]byte, size) // 5.12 µs at that rate
				for i := range n {
					check(ports[0].send(buf))
					time.Sleep(time.Duration(1+i%12) * time.Microsecond)
				}
				time.Sleep(time.Second)
			})
			ports[1].close()
			reader.Wait()
		})
		return s
	}
}
