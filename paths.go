package gosimnet

import "time"

// LAN is a path within a building: 100 to 300 µs, 1 Gbit/s.
func LAN() LinkConfig {
	return LinkConfig{Latency: Uniform(100*time.Microsecond, 300*time.Microsecond), BitsPerSecond: Gbps1}
}

// WAN is a path within a country: 10 ms and more, one packet in ten thousand lost.
func WAN() LinkConfig {
	return LinkConfig{Latency: Exponential(10*time.Millisecond, 12*time.Millisecond), Loss: 1e-4, BitsPerSecond: Mbps100}
}

// Transatlantic is a path between continents: 40 ms and more.
func Transatlantic() LinkConfig {
	return LinkConfig{Latency: Exponential(40*time.Millisecond, 42*time.Millisecond), Loss: 1e-3, BitsPerSecond: Mbps100}
}

// Satellite is a path over a geostationary satellite: 300 ms, 10 Mbit/s.
func Satellite() LinkConfig {
	return LinkConfig{Latency: Normal(300*time.Millisecond, 5*time.Millisecond), Loss: 1e-3, BitsPerSecond: Mbps10}
}

// Mobile3G is a phone's path: 100 ms with a long tail, 2 Mbit/s.
func Mobile3G() LinkConfig {
	return LinkConfig{Latency: Exponential(60*time.Millisecond, 100*time.Millisecond), Loss: 0.01, BitsPerSecond: 2e6, QueueBytes: 128 << 10}
}

// LossyWiFi is a crowded wireless network: a few milliseconds with a long tail, and loss in bursts, 4 % in all.
func LossyWiFi() LinkConfig {
	return LinkConfig{
		Latency:       Exponential(time.Millisecond, 4*time.Millisecond),
		Burst:         &GilbertElliott{GoodToBad: 0.01, BadToGood: 0.2, LossGood: 0.002, LossBad: 0.8},
		BitsPerSecond: 30e6,
	}
}
