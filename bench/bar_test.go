package bench

import "testing"

func TestBarJudge(t *testing.T) {
	most, least := Bar{Limit: 1.7}, Bar{Limit: 0.7, AtLeast: true}
	for _, test := range []struct {
		name string
		bar  Bar
		s    Spread
		want Verdict
	}{
		{"below", most, Spread{1.2, 1.5, 1.6}, Met},
		{"exactly", most, Spread{1.7, 1.7, 1.7}, Met},
		{"median below, a quarter above", most, Spread{1.5, 1.6, 2.0}, Met},
		{"median above, a quarter below", most, Spread{1.6, 1.8, 2.0}, Unsure},
		{"median above, a quarter at the limit", most, Spread{1.7, 1.8, 2.0}, Unsure},
		{"all but a quarter above", most, Spread{1.71, 1.8, 2.0}, Missed},
		{"enough", least, Spread{0.6, 0.8, 0.9}, Met},
		{"median too little, a quarter enough", least, Spread{0.5, 0.6, 0.7}, Unsure},
		{"too little", least, Spread{0.5, 0.6, 0.69}, Missed},
		{"nothing measured", most, SpreadOf(nil), Missed},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.bar.Judge(test.s); got != test.want {
				t.Errorf("%v against %v: %v, want %v", test.s, test.bar, got, test.want)
			}
		})
	}
}

func TestBarString(t *testing.T) {
	for _, test := range []struct {
		bar  Bar
		want string
	}{
		{Bar{Of: CPUTime, Limit: 10e3}, "≤ 10 µs"},
		{Bar{Of: CPUTime, Limit: 1.7, Ratio: true}, "≤ 1.70 ×"},
		{Bar{Of: Throughput, Limit: 0.7, Ratio: true, AtLeast: true}, "≥ 0.70 ×"},
		{Bar{Of: HeldMemory, Limit: 4 << 10}, "≤ 4.0 KiB"},
	} {
		if got := test.bar.String(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// A bar about work that nobody does would never be missed.
func TestBarsAreAboutWorks(t *testing.T) {
	works := make(map[string]Work)
	for _, w := range Works() {
		if _, twice := works[w.Name]; twice {
			t.Errorf("two works are called %q", w.Name)
		}
		works[w.Name] = w
	}
	for _, b := range Bars() {
		w, ok := works[b.Work]
		if !ok {
			t.Errorf("%s: no work is called %q", b.What, b.Work)
			continue
		}
		c, err := w.Contender(b.Contender)
		if err != nil {
			t.Errorf("%s: %v", b.What, err)
		}
		if b.Ratio && c.Name == w.Contenders[0].Name {
			t.Errorf("%s: %q is compared with itself", b.What, c.Name)
		}
	}
}
