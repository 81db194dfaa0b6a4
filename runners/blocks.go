package runners

import (
	"math/rand/v2"

	"github.com/kernelgate/kernelgate/gates"
)

// Blocks returns the order in which a round's samples are taken: blocks of baseline, candidate and
// control in random order and back again, so that a drift of the machine cancels within each.
func Blocks(rng *rand.Rand, pairs int) []string {
	sides := []rune{gates.SideBaseline, gates.SideCandidate, gates.SideControl}
	blocks := make([]string, pairs)
	for i := range blocks {
		rng.Shuffle(len(sides), func(i, j int) { sides[i], sides[j] = sides[j], sides[i] })
		block := string(sides)
		for k := len(sides) - 1; k >= 0; k-- {
			block += string(sides[k])
		}
		blocks[i] = block
	}
	return blocks
}
