package submission

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

// A kernelCache has the kernels that were described last, each for one state of its base.
type kernelCache struct {
	once  sync.Once
	known *lru.Cache[string, kernel]
}

// maxDescribed bounds the cache. A description has the sources of its kernel.
const maxDescribed = 64

func (c *kernelCache) get(key string, read func() (kernel, error)) (kernel, error) {
	c.once.Do(func() {
		known, err := lru.New[string, kernel](maxDescribed)
		if err != nil {
			panic(err) // the size is a constant
		}
		c.known = known
	})
	if k, ok := c.known.Get(key); ok {
		return k, nil
	}
	k, err := read()
	if err == nil {
		c.known.Add(key, k)
	}
	return k, err
}
