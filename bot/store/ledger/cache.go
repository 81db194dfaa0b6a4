package ledger

import (
	"container/list"

	"github.com/kernelgate/kernelgate/bot/change"
)

// cached is how many states are kept in memory. A change's events come close
// together, so few are enough.
const cached = 512

// A cache keeps the states that were used last.
type cache struct {
	size  int
	order *list.List // of *change.State, the last used in front
	byID  map[change.ID]*list.Element
}

func newCache(size int) *cache {
	return &cache{size: size, order: list.New(), byID: map[change.ID]*list.Element{}}
}

func (c *cache) get(id change.ID) *change.State {
	e, ok := c.byID[id]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*change.State)
}

func (c *cache) put(s *change.State) {
	if e, ok := c.byID[s.ID]; ok {
		e.Value = s
		c.order.MoveToFront(e)
		return
	}
	c.byID[s.ID] = c.order.PushFront(s)
	if c.order.Len() > c.size {
		last := c.order.Back()
		delete(c.byID, c.order.Remove(last).(*change.State).ID)
	}
}

func (c *cache) clear() {
	c.order.Init()
	clear(c.byID)
}
