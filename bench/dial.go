package bench

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// Dial opens connections, accepts them, and closes both ends.
func Dial() Work {
	return Work{
		Name: "dial, accept, close", Per: "connection", Times: 2_000, Shown: CPUTime,
		Contenders: []Contender{
			{"loopback", dialAndClose(loopback())},
			{sim, dialAndClose(simulated(sim, quiet()))},
			{"bufconn", dialAndClose(buffered())},
			{"net.Pipe", dialAndClose(pipe())},
		},
	}
}

func dialAndClose(p streams) func(n int) Sample {
	return func(n int) (s Sample) {
		p.open(func(l net.Listener, dial dialer) {
			var wg sync.WaitGroup
			wg.Go(func() {
				for range n {
					check(must(l.Accept()).Close())
				}
			})
			s = measure(n, func() {
				for range n {
					check(must(dial()).Close())
				}
			})
			wg.Wait()
		})
		return s
	}
}

// HTTPGet makes requests over one connection.
func HTTPGet() Work {
	return Work{
		Name: "HTTP GET, keep-alive", Per: "request", Times: 3_000, Shown: CPUTime,
		Contenders: []Contender{
			{"bufconn", httpGet(buffered())},
			{"bufconn in a bubble", httpGet(bubbled(buffered()))},
			{sim, httpGet(simulated(sim, quiet()))},
			{"loopback", httpGet(loopback())},
		},
	}
}

func httpGet(p streams) func(n int) Sample {
	return func(n int) (s Sample) {
		p.open(func(l net.Listener, dial dialer) {
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })}
			var wg sync.WaitGroup
			wg.Go(func() { server.Serve(l) })
			transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}
			client := &http.Client{Transport: transport}
			get(client, warmUp)
			s = measure(n, func() { get(client, n) })
			transport.CloseIdleConnections()
			check(server.Close())
			wg.Wait()
		})
		return s
	}
}

// get makes so many requests.
func get(client *http.Client, n int) {
	for range n {
		resp := must(client.Get("http://server/"))
		must(io.Copy(io.Discard, resp.Body))
		check(resp.Body.Close())
	}
}

// GRPCUnary makes calls over one connection.
func GRPCUnary() Work {
	return Work{
		Name: "gRPC unary call", Per: "call", Times: 2_000, Shown: CPUTime,
		Contenders: []Contender{
			{"bufconn", grpcUnary(buffered())},
			{"bufconn in a bubble", grpcUnary(bubbled(buffered()))},
			{sim, grpcUnary(simulated(sim, quiet()))},
			{"loopback", grpcUnary(loopback())},
		},
	}
}

func grpcUnary(p streams) func(n int) Sample {
	return func(n int) (s Sample) {
		p.open(func(l net.Listener, dial dialer) {
			server := grpc.NewServer()
			healthpb.RegisterHealthServer(server, health.NewServer())
			var wg sync.WaitGroup
			wg.Go(func() { server.Serve(l) })
			cc := must(grpc.NewClient("passthrough:///server:80", grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return dial() })))
			client := healthpb.NewHealthClient(cc)
			call(client, warmUp)
			s = measure(n, func() { call(client, n) })
			check(cc.Close())
			server.Stop()
			wg.Wait()
		})
		return s
	}
}

// call makes so many calls.
func call(client healthpb.HealthClient, n int) {
	for range n {
		must(client.Check(context.Background(), &healthpb.HealthCheckRequest{}))
	}
}
