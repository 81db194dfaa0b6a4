package checkout

import (
	"regexp"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
)

// A memo remembers git's answers that can never change. A thousand pull requests to one
// branch ask the same of its tip, and starting git takes longer than its answer. A nil
// memo remembers nothing.
type memo struct{ answers *lru.Cache[string, []byte] }

// A memo holds 4 MiB at most: there is one for each repository.
const (
	maxAnswers = 256
	maxAnswer  = 16 << 10
)

func newMemo() *memo {
	answers, err := lru.New[string, []byte](maxAnswers)
	if err != nil {
		panic(err) // the size is a constant
	}
	return &memo{answers: answers}
}

var wholeHash = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// answer is what is known of a command, nil where that is nothing, and the key to keep it
// by, which is empty where the answer may change: a branch moves, a hash does not.
func (m *memo) answer(args []string) (key string, known []byte) {
	revs := args
	if i := slices.Index(args, "--"); i >= 0 {
		revs = args[:i] // paths follow
	}
	if m == nil || !slices.Contains([]string{"rev-parse", "merge-base", "ls-tree"}, args[0]) {
		return "", nil
	}
	for _, arg := range revs[1:] {
		if !strings.HasPrefix(arg, "-") && !wholeHash.MatchString(strings.TrimSuffix(arg, "^{commit}")) {
			return "", nil
		}
	}
	key = strings.Join(args, "\x00")
	return key, m.get(key)
}

func (m *memo) get(key string) []byte {
	if m == nil {
		return nil
	}
	known, _ := m.answers.Get(key)
	return known
}

// keep remembers an answer that is not too long. An empty one is asked for again: nil
// stands for none.
func (m *memo) keep(key string, answer []byte) {
	if m != nil && key != "" && len(answer) > 0 && len(answer) <= maxAnswer {
		m.answers.Add(key, slices.Clone(answer))
	}
}
