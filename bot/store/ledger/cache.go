package ledger

import (
	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/kernelgate/kernelgate/bot/change"
)

// cached is how many states are kept in memory. A change's events come close
// together, so few are enough.
const cached = 512

// A cache keeps the states that were used last. It belongs to the follower alone.
type cache = lru.LRU[change.ID, *change.State]

func newCache(size int) *cache {
	c, err := lru.NewLRU[change.ID, *change.State](size, nil)
	if err != nil {
		panic(err) // the size is a constant, and positive
	}
	return c
}
