package webhook_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// maxWeight is what one event or error may keep in memory: the longest comment
// that GitHub takes, and names; maxListWeight the same for the events with lists of
// repositories, of which there may be 10,000.
const (
	maxWeight     = 4*65536 + 128<<10
	maxListWeight = 4 << 20
)

func checkWeight(t *testing.T, got webhook.Event, err error) {
	t.Helper()
	most := maxWeight
	switch got.(type) {
	case webhook.Installation, webhook.InstallationRepositories:
		most = maxListWeight
	}
	if kept := weight(reflect.ValueOf(got)); kept > most {
		t.Fatalf("a %T keeps %d bytes", got, kept)
	}
	if err != nil && len(err.Error()) > 2000 {
		t.Fatalf("an error of %d bytes: %.300s…", len(err.Error()), err)
	}
}

// weight is the size of a value and all that it holds.
func weight(v reflect.Value) int {
	if !v.IsValid() {
		return 0
	}
	sum := int(v.Type().Size())
	switch v.Kind() {
	case reflect.String:
		sum += v.Len()
	case reflect.Interface, reflect.Pointer:
		sum += weight(v.Elem())
	case reflect.Slice:
		sum += (v.Cap() - v.Len()) * int(v.Type().Elem().Size())
		for i := range v.Len() {
			sum += weight(v.Index(i))
		}
	case reflect.Struct:
		if v.Type().PkgPath() != "time" {
			for i := range v.NumField() {
				sum += weight(v.Field(i)) - int(v.Field(i).Type().Size())
			}
		}
	}
	return sum
}

// A mutator has the payloads in testdata, read once.
type mutator struct {
	names  []string
	bodies [][]byte
	trees  []node
}

// A node is a value in a payload: where it stands, and the values in it.
type node struct {
	start, end int64
	list       bool
	in         []node
}

func newMutator(t testing.TB) mutator {
	t.Helper()
	m := mutator{names: slices.Sorted(maps.Keys(payloads))}
	for _, name := range m.names {
		_, body := read(t, name)
		d := json.NewDecoder(bytes.NewReader(body))
		tree, err := nodes(d, body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m.bodies, m.trees = append(m.bodies, body), append(m.trees, tree)
	}
	return m
}

// nodes reads the next value and those in it.
func nodes(d *json.Decoder, body []byte) (node, error) {
	skip := func() int64 {
		at := d.InputOffset()
		for at < int64(len(body)) && bytes.IndexByte([]byte(" \t\r\n:,"), body[at]) >= 0 {
			at++
		}
		return at
	}
	n := node{start: skip()}
	token, err := d.Token()
	if open, ok := token.(json.Delim); ok && err == nil {
		n.list = open == '['
		for d.More() && err == nil {
			if !n.list {
				if _, err = d.Token(); err != nil { // the key
					break
				}
			}
			var below node
			below, err = nodes(d, body)
			n.in = append(n.in, below)
		}
		if err == nil {
			_, err = d.Token()
		}
	}
	n.end = d.InputOffset()
	return n, err
}

// draw is one of the payloads with one value replaced by something that GitHub
// would not send.
func (m mutator) draw(seed uint64) (event string, body []byte) {
	draw := rand.New(rand.NewPCG(seed, 3))
	i := draw.IntN(len(m.names))
	event, _, _ = strings.Cut(m.names[i], ".")
	at := m.trees[i]
	for len(at.in) > 0 && !(at.list && draw.IntN(2) == 0) {
		at = at.in[draw.IntN(len(at.in))]
	}
	body = slices.Concat(m.bodies[i][:at.start], []byte(bad(draw)), m.bodies[i][at.end:])
	if draw.IntN(16) == 0 {
		body = body[:draw.IntN(len(body))]
	}
	return event, body
}

func bad(draw *rand.Rand) string {
	long := 2000
	if draw.IntN(512) == 0 {
		long = 1 << 20
	}
	list := func(of string) string { return "[" + strings.Repeat(of+",", long/len(of)) + of + "]" }
	switch draw.IntN(8) {
	case 0:
		return `"` + strings.Repeat("x", long) + `"`
	case 1:
		return strings.Repeat("1", long)
	case 2:
		return list("null")
	case 3:
		return list("{}")
	case 4:
		return list(`{"id":7,"name":"x","number":5,"full_name":"a/b","base":{"repo":{"id":7}}}`)
	case 5:
		return strings.Repeat("[", 200) + strings.Repeat("]", 200)
	}
	plain := []string{"null", "true", "-1", "1e300", `""`, `"\u0000"`, `"../.."`, "[]", "{}", "7"}
	return plain[draw.IntN(len(plain))]
}

// FuzzMutated draws payloads that are nearly GitHub's.
func FuzzMutated(f *testing.F) {
	m := newMutator(f)
	for seed := range uint64(100) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		event, body := m.draw(seed)
		got, err := webhook.Decode(event, body)
		if (got == nil) != (err != nil) {
			t.Fatalf("got %#v, %v", got, err)
		}
		checkWeight(t, got, err)
	})
}

// TestALongTextDoesNotStay puts a text that is longer than any of GitHub's into
// each place of each payload in turn.
func TestALongTextDoesNotStay(t *testing.T) {
	places := map[string]bool{}
	for name := range payloads {
		event, body := read(t, name)
		var tree any
		if err := json.Unmarshal(body, &tree); err != nil {
			t.Fatal(err)
		}
		everyText(tree, func(path string, set func(string)) {
			if path == ".action" || places[event+path] { // the former says which event it is
				return
			}
			places[event+path] = true
			long := 8 << 10
			if strings.HasSuffix(path, ".body") {
				long = 4*65536 + 1
			}
			set(strings.Repeat("x", long))
			body, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			got, err := webhook.Decode(event, body)
			if kept := weight(reflect.ValueOf(got)); kept > 4<<10 {
				t.Errorf("%s: a %T keeps %d bytes of %s", name, got, kept, path)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("%s: an error of %d bytes over %s", name, len(err.Error()), path)
			}
		})
	}
	if len(places) < 120 {
		t.Errorf("only %d places", len(places))
	}
}

// everyText visits the texts of a tree; each is as it was after its visit.
func everyText(node any, visit func(path string, set func(string))) {
	child := func(path string, value any, put func(any)) {
		if text, ok := value.(string); ok {
			visit(path, func(s string) { put(s) })
			put(text)
			return
		}
		everyText(value, func(below string, set func(string)) { visit(path+below, set) })
	}
	switch n := node.(type) {
	case map[string]any:
		for key, value := range n {
			child("."+key, value, func(v any) { n[key] = v })
		}
	case []any:
		for i, value := range n {
			child("[]", value, func(v any) { n[i] = v })
		}
	}
}
