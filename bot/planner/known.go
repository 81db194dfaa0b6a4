package planner

import (
	"context"
	"crypto/sha256"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// known is what follows from commits and texts alone. A thousand pull requests to a branch are
// planned by one policy, a few manifests and the same rules. Its zero value is empty.
//
// What it returns is shared, and only to be read.
type known struct {
	once      sync.Once
	rules     *lru.Cache[string, string] // by commit
	manifests *lru.Cache[[sha256.Size]byte, *manifest.Manifest]
	policies  *lru.Cache[[sha256.Size]byte, *policy.Policy]
	readable  *lru.Cache[[sha256.Size]byte, struct{}] // manifests without mistakes
}

// maxKnown is how many of each are kept, and maxKnownText how long a text is at most that was
// read for one. Every plan asks for the mistakes of all manifests, so these are kept for more of
// them than one repository may have.
const (
	maxKnown     = 128
	maxKnownText = 32 << 10
	maxReadable  = 4096
)

func (k *known) begin() {
	k.once.Do(func() {
		k.rules, k.manifests, k.policies = newLRU[string, string](maxKnown), newLRU[[sha256.Size]byte, *manifest.Manifest](maxKnown), newLRU[[sha256.Size]byte, *policy.Policy](maxKnown)
		k.readable = newLRU[[sha256.Size]byte, struct{}](maxReadable)
	})
}

func newLRU[K comparable, V any](size int) *lru.Cache[K, V] {
	c, err := lru.New[K, V](size)
	if err != nil {
		panic(err) // the size is a constant
	}
	return c
}

func (k *known) rulesAt(ctx context.Context, repo *checkout.Repo, commit string) (string, error) {
	k.begin()
	if digest, ok := k.rules.Get(commit); ok {
		return digest, nil
	}
	digest, err := rules(ctx, repo, commit)
	if err == nil {
		k.rules.Add(commit, digest)
	}
	return digest, err
}

func (k *known) manifest(file string, text []byte) (*manifest.Manifest, error) {
	k.begin()
	return read(k.manifests, manifest.Parse, file, text)
}

// checkManifest returns the mistakes in a manifest.
func (k *known) checkManifest(file string, text []byte) error {
	k.begin()
	key := sha256.Sum256(text)
	if _, ok := k.readable.Get(key); ok {
		return nil
	}
	_, err := k.manifest(file, text)
	if err == nil {
		k.readable.Add(key, struct{}{})
	}
	return err
}

func (k *known) policy(file string, text []byte) (*policy.Policy, error) {
	k.begin()
	return read(k.policies, policy.Parse, file, text)
}

// read parses a text that is not known. A text with mistakes is parsed each time, since they name the file.
func read[T any](seen *lru.Cache[[sha256.Size]byte, *T], parse func(string, []byte) (*T, error), file string, text []byte) (*T, error) {
	key := sha256.Sum256(text)
	if got, ok := seen.Get(key); ok {
		return got, nil
	}
	got, err := parse(file, text)
	if err == nil && len(text) <= maxKnownText {
		seen.Add(key, got)
	}
	return got, err
}
