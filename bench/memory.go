package bench

import (
	"net"
	"runtime"
	"time"

	"github.com/marcopolo/simnet"
	"github.com/pion/transport/v4/vnet"

	"github.com/glycerine/gosimnet"
)

// clients are the hosts over which connections by the thousand are spread: a host has 16,384 ports to dial from.
const clients = 100

// keep makes so many things, keeps them, and tells what making took and what heap and goroutines each of them needs.
func keep[T any](n int, make1 func(i int) T) Sample {
	things := make([]T, n)
	before, goroutines := heap(), runtime.NumGoroutine()
	s := measure(n, func() {
		for i := range things {
			things[i] = make1(i)
		}
	})
	time.Sleep(time.Second) // handshakes end
	s.Held = float64(heap()-before) / float64(n)
	s.Goroutines = float64(runtime.NumGoroutine()-goroutines) / float64(n)
	runtime.KeepAlive(things)
	return s
}

// heap is how many bytes of the heap are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // pools are emptied by the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// MemoryPerHost tells what a host needs that does nothing.
func MemoryPerHost() Work {
	return Work{
		Name: "memory per host", Per: "host", Times: 5_000, Shown: HeldMemory, Kept: true,
		Contenders: []Contender{
			{"pion vnet", keepPion},
			{sim, func(n int) (s Sample) {
				simulate(quiet(), func(net *gosimnet.Simnet) {
					s = keep(n, func(i int) *gosimnet.Host { return net.Host(hostName(i)) })
				})
				return s
			}},
			{"marcopolo simnet", keepMarcoPolo},
		},
	}
}

func keepPion(n int) (s Sample) {
	inBubble(func() {
		router := pionRouter(latency)
		check(router.Start())
		s = keep(n, func(i int) *vnet.Net {
			nic := must(vnet.NewNet(&vnet.NetConfig{StaticIPs: []string{address(i).IP.String()}}))
			check(router.AddNet(nic))
			return nic
		})
		check(router.Stop())
	})
	return s
}

func keepMarcoPolo(n int) (s Sample) {
	inBubble(func() {
		net := &simnet.Simnet{LatencyFunc: simnet.StaticLatency(latency)}
		net.Start()
		link := simnet.LinkSettings{BitsPerSecond: 100_000 * simnet.Mibps}
		s = keep(n, func(i int) *simnet.SimConn {
			return net.NewEndpoint(address(i), simnet.NodeBiDiLinkSettings{Downlink: link, Uplink: link})
		})
		net.Close()
	})
	return s
}

// ends are both ends of a connection.
type ends struct{ client, server net.Conn }

// MemoryPerConnection tells what a connection needs over which nothing is sent, with both ends.
func MemoryPerConnection() Work {
	return Work{
		Name: "memory per connection, both ends", Per: "connection", Times: 10_000, Shown: HeldMemory, Kept: true,
		Contenders: []Contender{
			{"net.Pipe", func(n int) Sample {
				return keep(n, func(int) ends { a, b := net.Pipe(); return ends{a, b} })
			}},
			{sim, keepConnections},
		},
	}
}

// OpenConnections opens a hundred thousand connections and keeps them.
func OpenConnections() Work {
	return Work{
		Name: "100,000 connections", Per: "connection opened", Times: 100_000, Shown: CPUTime, Kept: true,
		Contenders: []Contender{
			{"net.Pipe", func(n int) Sample {
				return keep(n, func(int) ends { a, b := net.Pipe(); return ends{a, b} })
			}},
			{sim, keepConnections},
		},
	}
}

func keepConnections(n int) (s Sample) {
	simulate(quiet(), func(net *gosimnet.Simnet) {
		sp := newSpread(net, clients)
		s = keep(n, func(i int) ends { a, b := sp.connect(i); return ends{a, b} })
	})
	return s
}

// PingPongAmongConnections tells whether a round trip costs more when many other connections are open.
func PingPongAmongConnections() Work {
	w := Work{Name: "stream ping-pong by open connections", Per: "round trip", Times: 20_000, Shown: CPUTime}
	for _, open := range []int{1, 1000, 100_000} {
		w.Contenders = append(w.Contenders, Contender{numbered(sim, open, "open"), pingPongAmong(open)})
	}
	return w
}

// pingPongAmong plays over one of so many connections.
func pingPongAmong(open int) func(n int) Sample {
	return func(n int) (s Sample) {
		simulate(quiet(), func(net *gosimnet.Simnet) {
			sp := newSpread(net, clients)
			all := make([]ends, open)
			for i := range all {
				all[i].client, all[i].server = sp.connect(i)
			}
			chosen := all[open/2]
			go echo(chosen.server)
			trips(chosen.client, warmUp)
			s = measure(n, func() { trips(chosen.client, n) })
			runtime.KeepAlive(all)
		})
		return s
	}
}

// Snapshot tells what a picture of the network costs.
func Snapshot() Work {
	w := Work{Name: "snapshot", Per: "snapshot", Times: 20, Shown: CPUTime}
	for _, hosts := range []int{10, 1000} {
		w.Contenders = append(w.Contenders, Contender{numbered(sim, hosts, "hosts"), snapshots(hosts)})
	}
	return w
}

// snapshots takes n pictures of a network in which each host has an open connection.
func snapshots(hosts int) func(n int) Sample {
	return func(n int) (s Sample) {
		simulate(quiet(), func(net *gosimnet.Simnet) {
			sp := newSpread(net, hosts)
			for i := range hosts {
				sp.connect(i)
			}
			s = measure(n, func() {
				for range n {
					if snap := net.GetSimnetSnapshot(); len(snap.Peer) != hosts+1 {
						panic("hosts are missing")
					}
				}
			})
		})
		return s
	}
}
