package number

import (
	"math"
	"strings"
	"testing"
)

// gain is a gain with its interval.
func gain(value, lower, upper float64) string {
	return Gain(value, &lower, &upper) + " " + GainInterval(value, &lower, &upper)
}

// TestGainsOfARow checks that losses next to each other have one notation.
func TestGainsOfARow(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{[]float64{-0.35, -0.3, 0.1, 1.5}, "1.54×_slower, 1.43×_slower, +10.0_%, 2.50×"},
		{[]float64{-0.3, -0.01, 0}, "30.0_%_slower, 1.00_%_slower, 0.00_%"},
		{[]float64{math.NaN(), -0.4}, "–, 1.67×_slower"},
		{nil, ""},
	} {
		var all []Bounded
		for _, v := range c.values {
			all = append(all, Bounded{Value: v})
		}
		if got := strings.ReplaceAll(strings.Join(Gains(all), ", "), string(NBSP), "_"); got != c.want {
			t.Errorf("%v: %s, want %s", c.values, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	spaced := strings.NewReplacer("_", string(NBSP))
	for _, c := range []struct{ name, got, want string }{
		{"a time", Time(656.38), "656_µs"},
		{"a time of a short kernel", Time(9.152), "9.15_µs"},
		{"a time below one microsecond", Time(0.5123), "0.512_µs"},
		{"a time far below one microsecond", Time(0.005123), "0.00512_µs"},
		{"a time that rounds to a larger unit", Time(999.7), "1.00_ms"},
		{"a time below a larger unit", Time(999.4), "999_µs"},
		{"a time that rounds to one digit more", Time(9.997), "10.0_µs"},
		{"milliseconds", Time(1391.62), "1.39_ms"},
		{"many milliseconds", Time(21871.44), "21.9_ms"},
		{"seconds of a launch", Time(1234567.8), "1.23_s"},
		{"a time above a goal by a hair", Time(5.002, 5), "5.002_µs"},
		{"milliseconds above a goal by a hair", Time(5002, 5000), "5.002_ms"},
		{"a time at a goal", Time(5, 5), "5.00_µs"},
		{"no time", Time(0), "–"},
		{"a time that is none", Time(math.NaN()), "–"},
		{"before and after", FromTo(57.63, 46.113), "57.6 → 46.1_µs"},
		{"before and after in two units", FromTo(4248.96, 720.1), "4.25_ms → 720_µs"},
		{"before and nothing after", FromTo(57.63, 0), "57.6_µs → –"},
		{"at most", TimeAtMost(46.1178), "46.11_µs"},
		{"at most a whole", TimeAtMost(100), "100.0_µs"},
		{"at most milliseconds", TimeAtMost(19023.37), "19.02_ms"},
		{"at most nearly a millisecond", TimeAtMost(999.97), "999.9_µs"},
		{"at most nothing", TimeAtMost(0), "–"},

		{"speedup", Percent(0.161), "+16.1_%"},
		{"speedup of stage 2", Percent(1200.81/656.38 - 1), "+82.9_%"},
		{"latency change", Percent(-0.138), "−13.8_%"},
		{"small speedup", Percent(0.0016), "+0.16_%"},
		{"nothing", Percent(0), "0_%"},
		{"next to nothing", Percent(-0.00001), "0.00_%"},
		{"below the goal by a hair", Percent(0.0997, 0.10), "+9.97_%"},
		{"above the goal by a hair", Percent(0.10004, 0.10), "+10.004_%"},
		{"at the goal", Percent(0.1, 0.10), "+10.0_%"},
		{"below a guard by a hair", Percent(-0.02003, 0.02), "−2.003_%"},
		{"factor", Percent(43), "+4300_%"},
		{"endless", Percent(math.Inf(1)), "–"},
		{"huge", Percent(1e300), "+1e302_%"},

		{"a gain", Speedup(0.251), "+25.1_%"},
		{"a small gain", Speedup(0.0283), "+2.83_%"},
		{"a tiny gain", Speedup(0.00161), "+0.16_%"},
		{"no gain", Speedup(0), "0.00_%"},
		{"a loss", Speedup(-0.029, -0.02), "2.90_%_slower"},
		{"a loss beyond a limit by a hair", Speedup(-0.02003, -0.02), "2.003_%_slower"},
		{"a loss next to nothing", Speedup(-0.00001), "0.00_%"},
		{"just no factor", Speedup(0.994), "+99.4_%"},
		{"the first factor", Speedup(1), "2.00×"},
		{"a factor", Speedup(5.4), "6.40×"},
		{"a large factor", Speedup(119.6), "121×"},
		{"a factor near a goal", Speedup(5.04, 5), "6.04×"},
		{"a huge factor", Speedup(1e300), "1e300×"},
		{"an endless gain", Speedup(math.Inf(1)), "–"},
		{"just no factor of a loss", Speedup(-0.331), "33.1_%_slower"},
		{"a factor of a loss", Speedup(-0.429), "1.75×_slower"},
		{"a large factor of a loss", Speedup(-0.92), "12.5×_slower"},
		{"a stop", Speedup(-1), "100_%_slower"},
		{"a small factor", Factor(1.251), "1.25×"},
		{"a factor of a history", Factor(6.71), "6.71×"},

		{"a gain with its interval", gain(0.1612, 0.158, 0.1645), "+16.1_% [+15.8_%,_+16.4_%]"},
		{"a gain without one", Speedup(0.1612) + GainInterval(0.1612, nil, nil), "+16.1_%"},
		{"a gain in noise", gain(0.0761, -0.25, 0.55), "+8_% [−25_%,_+55_%]"},
		{"a small gain in noise", gain(0.0002, -0.0039, 0.0043), "0.0_% [−0.4_%,_+0.4_%]"},
		{"a small gain without noise", gain(0.02831, 0.0279, 0.0287), "+2.83_% [+2.79_%,_+2.87_%]"},
		{"a loss with its interval", gain(-0.0291, -0.0363, -0.0219), "2.9_%_slower [−3.6_%,_−2.2_%]"},
		{"a factor with its interval", gain(5.91, 5.85, 5.97), "6.91× [6.85×,_6.97×]"},
		{"a factor of a loss with its interval", gain(-0.429, -0.44, -0.42), "1.75×_slower [1.72×,_1.79×]"},
		{"a bound near a goal", Gain(0.12, new(0.0997), new(0.14), 0.1) + " " + GainInterval(0.12, new(0.0997), new(0.14), 0.1), "+12.0_% [+9.97_%,_+14.0_%]"},
		{"an interval with one bound", GainInterval(0.12, nil, new(0.14)), "[–,_+14.0_%]"},
		{"a gain in words", GainWords(0.161, nil, nil), "16.1_% faster"},
		{"a factor in words", GainWords(5.4, nil, nil), "6.40× faster"},
		{"a loss in words", GainWords(-0.029, nil, nil), "2.90_%_slower"},
		{"the reach of noise", Reach(-0.25, 0.55), "±40_%"},
		{"the reach of little noise", Reach(-0.0041, 0.0041), "±0.4_%"},
		{"a significance", P(0.0312), "p_=_0.031"},
		{"a high significance", P(5.5e-18), "p_<_0.001"},

		{"bytes", Amount(512, "B"), "512_B"},
		{"kibibytes", Amount(37990.4, "B"), "37.1_KiB"},
		{"whole kibibytes", Amount(49152, "B"), "48_KiB"},
		{"over a whole by a hair", Amount(49160, "B"), "48.01_KiB"},
		{"mebibytes", Amount(48<<20, "B"), "48_MiB"},
		{"count", Amount(128, ""), "128"},
		{"huge bytes", Amount(math.MaxFloat64, "B"), "1.714e302_MiB"},

		{"more", Change(new(84.0), new(88.0), ""), "+4"},
		{"less", Change(new(37990.0), new(35942.0), "B"), "−2_KiB"},
		{"same", Change(new(0.0), new(0.0), "B"), "0"},
		{"unknown", Change(nil, new(0.0), "B"), "–"},

		{"confidence", Confidence(0.95), "95_%"},
		{"confidence of a look", Confidence(0.9834), "98.34_%"},
		{"confidence near certainty", Confidence(0.999999), "99.9999_%"},

		{"error", Significant(0.0596, 4), "0.0596"},
		{"tiny error", Significant(1.234e-5, 3), "1.23e-5"},
		{"thousands", Significant(123456, 3), "123456"},

		{"condition", Condition(">= +10%"), "≥_+10_%"},
		{"lower bound below zero", Condition("speedup >= -2%"), "speedup ≥_−2_%"},
		{"latency", Condition("p50 <= 5us"), "p50 ≤_5_µs"},
		{"size", Condition("≤ 48KiB"), "≤ 48_KiB"},
		{"no condition", Condition(""), "–"},
		{"a share of sentences", Share(0.001), "0.10_%"},
		{"a share without its sign", Share(-0.161), "16.1_%"},
		{"a share of ten", Share(10.004), "1000_%"},
		{"a share for pages", PlainShare(0.1234), "12.3 %"},
		{"an error rate", SmallShare(0.0000123), "0.0012_%"},

		{"amount for pages", PlainAmount(49152, "B"), "48 KiB"},
		{"condition for pages", PlainCondition("<= 48KiB"), "≤ 48 KiB"},
		{"an unknown amount", AmountOf(nil, "B"), "–"},
		{"bytes of a page", Bytes(1536), "1.5 KiB"},
		{"many bytes of a page", Bytes(3 << 40), "3072 GiB"},

		{"a count", Count(12), "12"},
		{"no count", Count(0), "–"},
		{"one of a noun", Plural(1, "round"), "1 round"},
		{"several of a noun", Plural(0, "round"), "0 rounds"},
		{"hundreds", Thousands(999), "999"},
		{"groups of three", Thousands(1234567), "1,234,567"},

		{"seconds", Seconds(11.96), "12_s"},
		{"minutes", Seconds(150), "2_min"},
		{"hours", Seconds(7300), "2.03_h"},
		{"no seconds", Seconds(0), "–"},
		{"elapsed milliseconds", Elapsed(0.25), "250 ms"},
		{"elapsed seconds", Elapsed(12.34), "12.3 s"},
		{"nothing elapsed", Elapsed(0), ""},
		{"about a moment", About(0.2), "1 s"},
		{"about an hour", About(7100), "2 h"},
		{"a short time", ShortTime(999), "999 µs"},
		{"a short time of milliseconds", ShortTime(12_345), "12.3 ms"},
		{"a short time of seconds", ShortTime(2.5e6), "2.5 s"},

		// A bound is never rounded up: a time that reads like it is within it.
		{"a bound", AtMost(35.3978), "35.39"},
		{"a whole bound", AtMost(100), "100.00"},
		{"a small bound", AtMost(0.51239), "0.512"},
		{"a tiny bound", AtMost(0.0051239), "0.00512"},
		{"a large bound", AtMost(19023.37), "19023.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if want := spaced.Replace(c.want); c.got != want {
				t.Errorf("got %q, want %q", c.got, want)
			}
		})
	}
}
