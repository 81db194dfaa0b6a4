package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

const webhooksVersion = "7.6.1" // as in bot/github/webhook/testdata/fetch-examples.sh

// Schemas holds the schemas that GitHub publishes for its webhooks. The schemas have mistakes:
// GitHub's own example payloads violate some of them. A violation that occurs in an example is
// accepted in every payload.
type Schemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by event or event$action; nil until first used
	found    map[uint64][]fault            // faults of payloads, by formOf
	forgiven map[string]bool               // known mistakes of the schemas
	learnt   func() (lessons, error)       // called after the first fault that is not in forgiven
}

// lessons are the violations found in GitHub's example payloads.
type lessons struct {
	forgiven map[string]bool
	examples int
	valid    int // examples without any violation
}

var template = regexp.MustCompile(`\{[^{}]*\}`)

// ReadSchemas reads the schemas and GitHub's examples from the cache, once. The error is
// fs.ErrNotExist if they are not there.
var ReadSchemas = sync.OnceValues(readSchemas)

// LoadSchemas reads the schemas and examples from the cache.
func LoadSchemas(t testing.TB) *Schemas {
	t.Helper()
	s, err := ReadSchemas()
	needs(t, err, "GitHub's webhook schemas are not here; run bot/github/webhook/testdata/fetch-examples.sh")
	return s
}

func readSchemas() (*Schemas, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(cache, "kernelgate", "webhooks-schemas-"+webhooksVersion, "schema.json"))
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read the webhook schemas: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	// The validator does not support the operators of URI templates, as in {/sha}.
	compiler.RegisterFormat(&jsonschema.Format{Name: "uri-template", Validate: func(v any) error {
		text, ok := v.(string)
		if u, err := url.Parse(template.ReplaceAllString(text, "")); ok && (err != nil || !u.IsAbs()) {
			return fmt.Errorf("%q is no address", text)
		}
		return nil
	}})
	if err := compiler.AddResource("webhooks.json", doc); err != nil {
		return nil, fmt.Errorf("read the webhook schemas: %w", err)
	}
	s := &Schemas{compiler: compiler, compiled: map[string]*jsonschema.Schema{}, found: map[uint64][]fault{}, forgiven: map[string]bool{}}
	definitions, _ := at(doc, "definitions").(map[string]any)
	for name := range definitions {
		if !strings.Contains(name, "$") {
			continue
		}
		s.compiled[strings.TrimSuffix(name, "$event")] = nil
	}
	for _, rule := range []string{
		// The enumerations of events lack an event that GitHub's API description has.
		"app/properties/events/items merge_group is not on the list", "installation/properties/events/items merge_group is not on the list",
		"webhook-events/oneOf/0/items merge_group is not on the list",
		// A suite of skipped checks has the conclusion skipped, as the API description says.
		"check_suite$completed/properties/check_suite/properties/conclusion skipped is not on the list",
		"check_run$completed/properties/check_run/properties/check_suite/properties/conclusion skipped is not on the list",
		"check_run$created/properties/check_run/properties/check_suite/properties/conclusion skipped is not on the list",
		// All examples are from hooks of repositories. The hook of an App has no URL in the API.
		"ping$event/properties/hook url is missing", "ping$event/properties/hook ping_url is missing",
	} {
		s.forgiven[rule] = true
	}
	path := filepath.Join(cache, "kernelgate", "webhooks-examples-"+webhooksVersion, "api.github.com", "index.json")
	s.learnt = sync.OnceValues(func() (lessons, error) { return s.learn(path) })
	_, err = os.Stat(path)
	return s, err
}

// schema compiles a schema on first use. It returns nil if there is no schema with that name.
func (s *Schemas) schema(name string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	schema, known := s.compiled[name]
	if schema != nil || !known {
		return schema, nil
	}
	at := name
	if !strings.Contains(name, "$") {
		at += "$event"
	}
	schema, err := s.compiler.Compile("webhooks.json#/definitions/" + at)
	if err != nil {
		return nil, fmt.Errorf("compile the schema of %s: %w", name, err)
	}
	s.compiled[name] = schema
	return schema, nil
}

// learn finds the rules that GitHub's own examples violate.
func (s *Schemas) learn(path string) (lessons, error) {
	l := lessons{forgiven: map[string]bool{}}
	raw, err := os.ReadFile(path)
	if err != nil {
		return l, err
	}
	var events []struct {
		Name     string
		Examples []json.RawMessage
	}
	if err := json.Unmarshal(raw, &events); err != nil {
		return l, fmt.Errorf("read GitHub's example webhooks: %w", err)
	}
	for _, event := range events {
		for _, example := range event.Examples {
			l.examples++
			faults, known := s.faults(event.Name, example)
			if known && len(faults) == 0 {
				l.valid++
			}
			for _, f := range faults {
				l.forgiven[f.rule] = true
			}
		}
	}
	return l, nil
}

// Check returns the violations of a payload, except those that occur in GitHub's own examples.
// known is false if GitHub sends no such event.
func (s *Schemas) Check(event string, payload []byte) (wrong []string, known bool) {
	faults, known := s.faults(event, payload)
	for _, f := range faults {
		if s.forgiven[f.rule] {
			continue
		}
		l, err := s.learnt()
		if err != nil {
			return []string{err.Error()}, known
		}
		if !l.forgiven[f.rule] {
			wrong = append(wrong, f.text)
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong), known
}

// Examples returns the number of GitHub's examples and how many of them are valid.
func (s *Schemas) Examples() (all, valid int, err error) {
	l, err := s.learnt()
	return l.examples, l.valid, err
}

// A fault is one violated rule of a schema at one place of a payload.
type fault struct{ rule, text string }

func (s *Schemas) faults(event string, payload []byte) ([]fault, bool) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err != nil {
		return []fault{{"JSON", err.Error()}}, true
	}
	schema, err := s.schema(event)
	if action, _ := at(value, "action").(string); action != "" && schema == nil && err == nil {
		schema, err = s.schema(event + "$" + action)
	}
	if err != nil {
		return []fault{{"schema", err.Error()}}, true
	}
	if schema == nil {
		return nil, false
	}
	form := formOf(event, value)
	s.mu.Lock()
	found, known := s.found[form]
	s.mu.Unlock()
	if !known {
		problem, _ := schema.Validate(value).(*jsonschema.ValidationError)
		found = leaves(problem, nil)
		s.mu.Lock()
		s.found[form] = found
		s.mu.Unlock()
	}
	return found, true
}

// leaves collects the rules at the leaves of a validation error, one per property.
func leaves(e *jsonschema.ValidationError, out []fault) []fault {
	if e == nil {
		return out
	}
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if len(e.Causes) > 0 {
			return append(out, nearest(e.Causes)...)
		}
	}
	for _, cause := range e.Causes {
		out = leaves(cause, out)
	}
	if len(e.Causes) > 0 {
		return out
	}
	_, where, _ := strings.Cut(e.SchemaURL, "#/definitions/")
	place := "/" + strings.Join(e.InstanceLocation, "/")
	add := func(what string) {
		rule := where + " " + what
		out = append(out, fault{rule, fmt.Sprintf("%s: %s (%s)", place, what, where)})
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			add(name + " is missing")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			add(name + " is not GitHub's")
		}
	case *kind.Type:
		add(fmt.Sprintf("is %s, want %s", k.Got, strings.Join(k.Want, " or ")))
	case *kind.Enum:
		add(fmt.Sprintf("%v is not on the list", k.Got))
	default:
		add(strings.Join(e.ErrorKind.KeywordPath(), "/"))
	}
	return out
}

// nearest returns the violations of the choice that was probably meant: one of the right type if
// there is one, with the fewest violations.
func nearest(choices []*jsonschema.ValidationError) []fault {
	var least []fault
	best := 0
	for i, choice := range choices {
		wrong := leaves(choice, nil)
		cost := len(wrong)
		if _, other := choice.ErrorKind.(*kind.Type); other {
			cost += 1000
		}
		if i == 0 || cost < best {
			least, best = wrong, cost
		}
	}
	return least
}
