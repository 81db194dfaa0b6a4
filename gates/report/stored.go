package report

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
)

var (
	// storedGain is a speedup in a stored sentence, with its interval if it has one. Bounds that the policy sets stay as it has them.
	storedGain = regexp.MustCompile(`(at least |at most |must reach )?` + storedShare + `(?: \[` + storedShare + `, ` + storedShare + `\])?`)
	storedTime = regexp.MustCompile(`(≤\x{a0})?([0-9]+(?:\.[0-9]+)?)[ \x{a0}]µs( \[)?`)
	// No speedup is slower: something is.
	speedupSlower = regexp.MustCompile(`speedup (` + slowerText + `)`)
	tailSlower    = regexp.MustCompile(`the speedup of (the \w+) is (` + slowerText + `)`)
	bareShare     = regexp.MustCompile(`([0-9])%`)
	storedAsked   = regexp.MustCompile(`ask(?:ed|s only) [^);]*[<>]=? ?[^);]*`)
)

const slowerText = `[0-9.]+(?:\x{a0}%|×)` + number.Slower

const storedShare = `([+−][0-9.]+(?:e[0-9]+)?)\x{a0}%`

// InNotation puts the figures of a stored sentence into the notation of the tables next to it. A verdict keeps the words in which it
// was judged, so that judging its evidence again gives the same verdict to the byte.
func InNotation(s string) string {
	s = storedTime.ReplaceAllStringFunc(s, func(found string) string {
		m := storedTime.FindStringSubmatch(found)
		micros, err := strconv.ParseFloat(m[2], 64)
		switch {
		case err != nil || m[3] != "" || micros < 1000 && m[1] == "":
			return found
		case m[1] != "":
			return m[1] + number.TimeAtMost(micros)
		}
		return number.Time(micros)
	})
	if !strings.Contains(s, "machine code ") || !strings.Contains(s, "→") { // else the share is that of the code's size
		s = gainsInNotation(s)
	}
	return bareShare.ReplaceAllString(storedAsked.ReplaceAllStringFunc(s, number.Condition), "$1"+string(nbsp)+"%")
}

func gainsInNotation(s string) string {
	s = storedGain.ReplaceAllStringFunc(s, func(found string) string {
		m := storedGain.FindStringSubmatch(found)
		value, ok := shareOf(m[2])
		lower, bounded := shareOf(m[3])
		upper, closed := shareOf(m[4])
		factor := strings.Contains(number.Speedup(value), "×")
		switch {
		case m[1] != "" || !ok:
		case factor && bounded && closed:
			return number.Gain(value, &lower, &upper) + " " + strings.ReplaceAll(number.GainInterval(value, &lower, &upper), ","+string(nbsp), ", ")
		case factor:
			return number.Speedup(value)
		case value < 0: // with the digits that are there
			figure, interval, _ := strings.Cut(found, "%")
			return strings.TrimPrefix(figure, minus) + "%" + number.Slower + interval
		}
		return found
	})
	return speedupSlower.ReplaceAllString(tailSlower.ReplaceAllString(s, "$1 is $2"), "$1")
}

// shareOf reads a share as a stored sentence has it, without its unit.
func shareOf(s string) (share float64, ok bool) {
	share, err := strconv.ParseFloat(strings.Replace(s, minus, "-", 1), 64)
	return share / 100, err == nil
}
