package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/policies/ident"
)

// A payload is a body on its way to an Event. It keeps the first error, so that
// an event is read in one expression.
type payload struct {
	fields map[string]json.RawMessage
	err    error
}

func open(body []byte) *payload {
	p := &payload{}
	if err := json.Unmarshal(body, &p.fields); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			p.fail("the body is a JSON %s and no object", wrong.Value)
		} else {
			p.fail("the JSON is broken %s: %w", brokenAt(body), err)
		}
	}
	return p
}

func (p *payload) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// required reads a field that must be there and not null.
func required[T any](p *payload, field string) T {
	if raw, there := p.fields[field]; !there || string(raw) == "null" {
		p.fail("%s is missing", field)
	}
	return optional[T](p, field)
}

// optional reads a field; what is not there is zero.
func optional[T any](p *payload, field string) (value T) {
	raw, there := p.fields[field]
	if !there || p.err != nil {
		return value
	}
	err := json.Unmarshal(raw, &value)
	switch wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); {
	case ok:
		if wrong.Field != "" {
			field += "." + wrong.Field
		}
		p.fail("%.*s is a JSON %.*s and should be a Go %s", maxShown, field, maxShown, wrong.Value, wrong.Type)
	case err != nil: // its text may quote what it could not read, all of it
		p.fail("%s: %.*s", field, maxShown, err)
	}
	return value
}

func (p *payload) sha(path, value string) string {
	switch {
	case value == "":
		p.fail("%s is missing", path)
	case !ident.IsCommit(value):
		p.fail("%s is no commit id", path)
	}
	return value
}

func (p *payload) number(path string, value int) int {
	if value <= 0 {
		p.fail("%s is missing or not positive", path)
	}
	return value
}

// What an event may hold. GitHub's own limits are: 65,536 characters of up to four
// bytes for a comment, 256 for a title, 100 labels a pull request, and some 250
// bytes or less for names of all kinds.
const (
	maxBody         = 4 * 65536
	maxTitle        = 4 * 256
	maxName         = 1024
	maxLabels       = 100
	maxNumbers      = 100
	maxRepositories = 10_000

	maxShown = 200 // of a text in an error
)

// text refuses what is longer than GitHub sends.
func (p *payload) text(path, value string, most int) string {
	if len(value) > most {
		p.fail("%s has %d bytes, which is more than %d", path, len(value), most)
		return ""
	}
	return value
}

func (p *payload) atMost(path string, n, most int) {
	if n > most {
		p.fail("%s has %d entries, which is more than %d", path, n, most)
	}
}

// name is a text that must be there.
func (p *payload) name(path, value string) string {
	if value == "" {
		p.fail("%s is missing or empty", path)
	}
	return p.text(path, value, maxName)
}

func (p *payload) user(path string, u wireUser) User {
	return User{p.text(path+".login", u.Login, maxName), u.Type == "Bot"}
}

// author is a user who must have a name: commands need to know who.
func (p *payload) author(path string, u wireUser) User {
	p.name(path+".login", u.Login)
	return p.user(path, u)
}

// repository leaves the name to checkRepository.
func (p *payload) repository(path string, r wireRepository) Repository {
	p.text(path+".default_branch", r.DefaultBranch, maxName)
	return Repository(r)
}

// numbers are those of the pull requests in the repository. GitHub also lists
// what is open elsewhere with the same head, such as in a fork.
func (p *payload) numbers(path string, c wireCheck, in Repository) []int {
	var numbers []int
	for _, pr := range c.PullRequests {
		if pr.Base.Repo.ID == in.ID && pr.Number > 0 {
			numbers = append(numbers, pr.Number)
		}
	}
	p.atMost(path+".pull_requests", len(numbers), maxNumbers)
	return numbers
}

// checkRepository refuses names that would mean something as a path.
func (p *payload) checkRepository(path string, r Repository) {
	switch {
	case r.ID <= 0:
		p.fail("%s.id is missing or not positive", path)
	case !ident.IsRepository(r.FullName):
		p.fail("%s.full_name is not owner/name", path)
	}
}

func (p *payload) origin() Origin {
	return Origin{
		Repository:   p.repository("repository", optional[wireRepository](p, "repository")),
		Installation: optional[wireInstallation](p, "installation").ID,
		Sender:       p.user("sender", optional[wireUser](p, "sender")),
	}
}

// inRepository is the origin of an event that happens in a repository.
func (p *payload) inRepository() Origin {
	o := p.origin()
	p.checkRepository("repository", o.Repository)
	return o
}

// installed is the origin of an event about an installation.
func (p *payload) installed() Origin {
	o := p.origin()
	if o.Installation <= 0 {
		p.fail("installation.id is missing or not positive")
	}
	return o
}

func (p *payload) repositories(field string) []Repository {
	var list []Repository
	all := optional[[]wireRepository](p, field)
	p.atMost(field, len(all), maxRepositories)
	for i, r := range all[:min(len(all), maxRepositories)] {
		at := fmt.Sprintf("%s[%d]", field, i)
		list = append(list, p.repository(at, r))
		p.checkRepository(at, list[i])
	}
	return list
}

// brokenAt names the field near which a JSON text stops being one:
// encoding/json knows the byte alone.
func brokenAt(body []byte) string {
	type level struct {
		object, keyNext bool
		key             string
		index           int
	}
	var levels []level
	done := func() {
		if len(levels) == 0 {
			return
		}
		top := &levels[len(levels)-1]
		top.keyNext = top.object
		top.index++
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	for {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		key, isString := token.(string)
		switch delim, _ := token.(json.Delim); {
		case delim == '{' || delim == '[':
			levels = append(levels, level{object: delim == '{', keyNext: delim == '{'})
		case delim == '}' || delim == ']':
			levels = levels[:len(levels)-1]
			done()
		case isString && len(levels) > 0 && levels[len(levels)-1].keyNext:
			levels[len(levels)-1].key, levels[len(levels)-1].keyNext = key, false
		default:
			done()
		}
	}
	const shownLevels, shownKey = 8, 40
	var path strings.Builder
	for _, l := range levels[:min(len(levels), shownLevels)] {
		switch {
		case !l.object:
			path.WriteString("[" + strconv.Itoa(l.index) + "]")
		case l.key != "":
			path.WriteString("." + strings.ToValidUTF8(l.key[:min(len(l.key), shownKey)], "…"))
		}
	}
	switch {
	case path.Len() == 0 && len(levels) == 0 && decoder.InputOffset() > 0:
		return "after its end"
	case path.Len() == 0:
		return "at its beginning"
	}
	return "near " + strconv.Quote(strings.TrimPrefix(path.String(), "."))
}
