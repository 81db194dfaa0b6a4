package number

import (
	"math"
	"strings"
	"testing"
)

func TestNumbers(t *testing.T) {
	spaced := strings.NewReplacer("_", string(NBSP))
	for _, c := range []struct{ name, got, want string }{
		{"micros", Micros(656.38), "656.38"},
		{"micros of a long kernel", Micros(1391.62), "1391.62"},
		{"micros of a very long kernel", Micros(21871.44), "21871.4"},
		{"micros of a second", Micros(1234567.8), "1234568"},
		{"micros of a short kernel", Micros(9.15), "9.15"},
		{"micros below one", Micros(0.5123), "0.512"},
		{"micros far below one", Micros(0.005123), "0.00512"},
		{"micros above a goal by a hair", Micros(5.002, 5), "5.002"},
		{"micros at a goal", Micros(5, 5), "5.00"},
		{"no micros", Micros(0), "–"},
		{"micros that are none", Micros(math.NaN()), "–"},

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

		{"a time", Time(46.113), "46.11_µs"},
		{"no time", Time(0), "–"},
		{"a gain", Speedup(0.251), "+25.1_%"},
		{"a loss", Speedup(-0.029, -0.02), "−2.9_%"},
		{"just no factor", Speedup(1.999), "+199.9_%"},
		{"a factor", Speedup(5.4), "6.4×"},
		{"a large factor", Speedup(119.6), "121×"},
		{"a factor near a goal", Speedup(5.04, 5), "6.04×"},
		{"a huge factor", Speedup(1e300), "1e300×"},
		{"an endless gain", Speedup(math.Inf(1)), "–"},
		{"a bound of a factor", SpeedupBound(1.95, 2.05), "2.95×"},
		{"a bound of a share", SpeedupBound(2.05, 1.95), "+205.0_%"},
		{"a small factor", Factor(1.251), "1.25×"},

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
