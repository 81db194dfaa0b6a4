package report

import (
	"math"
	"strings"
	"testing"
)

func TestNumbers(t *testing.T) {
	spaced := strings.NewReplacer("_", string(nbsp))
	for _, c := range []struct{ name, got, want string }{
		{"micros", micros(656.38), "656.38"},
		{"micros of a long kernel", micros(1391.62), "1391.62"},
		{"micros of a very long kernel", micros(21871.44), "21871.4"},
		{"micros of a second", micros(1234567.8), "1234568"},
		{"micros of a short kernel", micros(9.15), "9.15"},
		{"micros below one", micros(0.5123), "0.512"},
		{"micros far below one", micros(0.005123), "0.00512"},
		{"micros above a goal by a hair", micros(5.002, 5), "5.002"},
		{"micros at a goal", micros(5, 5), "5.00"},
		{"no micros", micros(0), "–"},
		{"micros that are none", micros(math.NaN()), "–"},

		{"speedup", percent(0.161), "+16.1_%"},
		{"speedup of stage 2", percent(1200.81/656.38 - 1), "+82.9_%"},
		{"latency change", percent(-0.138), "−13.8_%"},
		{"small speedup", percent(0.0016), "+0.16_%"},
		{"nothing", percent(0), "0_%"},
		{"next to nothing", percent(-0.00001), "0.00_%"},
		{"below the goal by a hair", percent(0.0997, 0.10), "+9.97_%"},
		{"above the goal by a hair", percent(0.10004, 0.10), "+10.004_%"},
		{"at the goal", percent(0.1, 0.10), "+10.0_%"},
		{"below a guard by a hair", percent(-0.02003, 0.02), "−2.003_%"},
		{"factor", percent(43), "+4300_%"},
		{"endless", percent(math.Inf(1)), "–"},
		{"huge", percent(1e300), "+1e302_%"},

		{"a time", Micros(46.113), "46.11_µs"},
		{"no time", Micros(0), "–"},
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
		{"a small factor", factor(1.251), "1.25×"},

		{"bytes", amount(512, "B"), "512_B"},
		{"kibibytes", amount(37990.4, "B"), "37.1_KiB"},
		{"whole kibibytes", amount(49152, "B"), "48_KiB"},
		{"over a whole by a hair", amount(49160, "B"), "48.01_KiB"},
		{"mebibytes", amount(48<<20, "B"), "48_MiB"},
		{"count", amount(128, ""), "128"},
		{"huge bytes", amount(math.MaxFloat64, "B"), "1.714e302_MiB"},

		{"more", change(ptr(84.0), ptr(88.0), ""), "+4"},
		{"less", change(ptr(37990.0), ptr(35942.0), "B"), "−2_KiB"},
		{"same", change(ptr(0.0), ptr(0.0), "B"), "0"},
		{"unknown", change(nil, ptr(0.0), "B"), "–"},

		{"confidence", confidence(0.95), "95_%"},
		{"confidence of a look", confidence(0.9834), "98.34_%"},
		{"confidence near certainty", confidence(0.999999), "99.9999_%"},

		{"error", significant(0.0596, 4), "0.0596"},
		{"tiny error", significant(1.234e-5, 3), "1.23e-5"},
		{"thousands", significant(123456, 3), "123456"},

		{"condition", conditionWords(">= +10%"), "≥_+10_%"},
		{"lower bound below zero", conditionWords("speedup >= -2%"), "speedup ≥_−2_%"},
		{"latency", conditionWords("p50 <= 5us"), "p50 ≤_5_µs"},
		{"size", conditionWords("≤ 48KiB"), "≤ 48_KiB"},
		{"no condition", conditionWords(""), "–"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if want := spaced.Replace(c.want); c.got != want {
				t.Errorf("got %q, want %q", c.got, want)
			}
		})
	}
}
