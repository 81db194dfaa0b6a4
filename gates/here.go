package gates

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Gates advise the author of a pull request, who measures again by a comment. Somebody at a terminal has a flag for it, and starts
// from the first round again: the flag takes all rounds, and the comment those that are added.

var addedRounds = regexp.MustCompile(`comment /rebench rounds=([0-9]+)`)

// atTerminal is the advice of a gate for somebody at a terminal, after so many rounds.
func atTerminal(advice []string, rounds int) {
	for i, text := range advice {
		text = addedRounds.ReplaceAllStringFunc(text, func(comment string) string {
			added, _ := strconv.Atoi(addedRounds.FindStringSubmatch(comment)[1])
			return fmt.Sprintf("run again with --rounds %d", rounds+added)
		})
		text = strings.ReplaceAll(text, "measure more rounds: comment /rebench", fmt.Sprintf("measure more rounds: run again with --rounds %d", 2*max(rounds, 1)))
		advice[i] = strings.ReplaceAll(text, "comment /rebench", "run again")
	}
}
