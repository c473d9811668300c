package gosimnet

// purpose says what a random draw decides, so that one kind of decision never
// shifts another.
type purpose uint64

const (
	drawLatency purpose = iota + 1
	drawLoss
	drawDropSend
	drawDeafRead
	drawAckLatency
	drawAckLoss
	drawProbe
	drawChop
	drawIdentity
	drawVictim
	drawBit
	drawDuplicate
	drawDuplicateLatency
	drawCorrupt
	drawReorder
	drawBurst
	drawBurstState
	drawWeather
	drawShape
	drawSwizzle
	drawSwarm
)

const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio, as in splitmix64

// mix is the finalizer of splitmix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, 2014): every input bit reaches every output bit.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// draw is the random word number n of one purpose of one flow. It is a pure
// function: nothing that other flows do, and no order of calls, changes it.
func draw(seed, flow uint64, p purpose, n uint64) uint64 {
	return mix(mix(seed^mix(flow+uint64(p)*golden)) + (n+1)*golden)
}

// unit maps a random word to [0, 1).
func unit(word uint64) float64 { return float64(word>>11) / (1 << 53) }

// happens reports whether an event of probability p happens, by random word n of one purpose of the flow.
func (f *flow) happens(p float64, why purpose, n uint64) bool {
	return p > 0 && unit(draw(f.net.seed, f.key, why, n)) < p
}

// delay is the latency of the flow's link, by random word n of one purpose.
func (f *flow) delay(l *link, why purpose, n uint64) int64 {
	if l.constant > 0 {
		return l.constant
	}
	return f.drawDelay(l, why, n)
}

func (f *flow) drawDelay(l *link, why purpose, n uint64) int64 {
	return l.latency(sample{word: draw(f.net.seed, f.key, why, n), n: n, pair: draw(f.net.seed, l.key, drawIdentity, 0)})
}

// hashString folds s into h: FNV-1a with a strong finish, and a strong start, so that no difference
// between two small numbers makes up for one between two first letters.
func hashString(h uint64, s string) uint64 {
	h = mix(h + golden)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h + uint64(len(s)))
}

// foldSeed condenses a scenario's 32 bytes into one word.
func foldSeed(seed [32]byte) uint64 {
	var h uint64
	for i := 0; i < len(seed); i += 8 {
		var word uint64
		for _, b := range seed[i : i+8] {
			word = word<<8 | uint64(b)
		}
		h = mix(h ^ word + golden)
	}
	return h
}
