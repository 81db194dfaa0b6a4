package repos

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/bot/compat"
)

// An Event is one of Named, Removed, MadePublic and MadePrivate. The journal keeps it forever. GitHub's number identifies a
// repository; its name may belong to a different repository tomorrow.
type Event interface{ kind() string }

// Named says which name GitHub has for a repository now, and that the bot can reach it.
type Named struct {
	Repo int64  `json:"repo"`
	Name string `json:"name"`
}

// Removed says that the bot cannot reach a repository any more.
type Removed struct {
	Repo int64  `json:"repo"`
	Why  string `json:"why"`
}

// MadePublic says which repository the configuration meant when it first named a repository with public pages.
type MadePublic struct {
	Repo int64  `json:"repo"`
	Name string `json:"name"` // as in the configuration, in lower case
}

// MadePrivate says that the configuration does not have the name any more. The next repository with that name in the
// configuration may be a different one.
type MadePrivate struct {
	Name string `json:"name"`
}

func (Named) kind() string       { return "repository_named" }
func (Removed) kind() string     { return "repository_removed" }
func (MadePublic) kind() string  { return "pages_public" }
func (MadePrivate) kind() string { return "pages_private" }

const (
	prefix       = "repository-"
	publicPrefix = "public-"
)

// Subject is a repository's subject in the journal. No change has such a subject.
func Subject(id int64) string { return fmt.Sprintf("%s%d", prefix, id) }

// PublicSubject is the subject of a name in the configuration's list of repositories with public pages.
func PublicSubject(name string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(name)))
	return publicPrefix + hex.EncodeToString(sum[:8])
}

// IsSubject reports whether the events of a subject are events of this package.
func IsSubject(name string) bool {
	return strings.HasPrefix(name, prefix) || strings.HasPrefix(name, publicPrefix)
}

// KindOf is the word under which an event is stored.
func KindOf(e Event) string { return e.kind() }

var vocabulary = compat.Vocabulary[Event]{KindOf: KindOf, About: "a repository", All: []Event{Named{}, Removed{}, MadePublic{}, MadePrivate{}}}

// Decode reads a stored event. It refuses an event that a newer version wrote and this one does not know.
func Decode(from compat.Writer, kind string, data []byte) (Event, error) {
	return vocabulary.Decode(from, kind, data)
}
