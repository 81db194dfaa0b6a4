package webhook

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/policies/strict"
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
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
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
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		if wrong.Field != "" {
			field += "." + wrong.Field
		}
		p.fail("%s is a JSON %s and should be a Go %s", field, wrong.Value, wrong.Type)
	case err != nil:
		p.fail("%s: %w", field, err)
	}
	return value
}

func (p *payload) sha(path, value string) string {
	switch {
	case value == "":
		p.fail("%s is missing", path)
	case !strict.IsCommit(value):
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

func (p *payload) filled(path, value string) string {
	if value == "" {
		p.fail("%s is missing or empty", path)
	}
	return value
}

// checkRepository refuses names that would mean something as a path.
func (p *payload) checkRepository(path string, r Repository) {
	switch {
	case r.ID <= 0:
		p.fail("%s.id is missing or not positive", path)
	case !strict.IsRepository(r.FullName):
		p.fail("%s.full_name is not owner/name", path)
	}
}

func (p *payload) origin() Origin {
	return Origin{
		Repository:   optional[wireRepository](p, "repository").repository(),
		Installation: optional[wireInstallation](p, "installation").ID,
		Sender:       optional[wireUser](p, "sender").user(),
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

func (p *payload) account() User {
	return optional[wireInstallation](p, "installation").Account.user()
}

func (p *payload) repositories(field string) []Repository {
	var list []Repository
	for i, r := range optional[[]wireRepository](p, field) {
		list = append(list, r.repository())
		p.checkRepository(fmt.Sprintf("%s[%d]", field, i), list[i])
	}
	return list
}
