package webhook_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
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
}

func newMutator(t testing.TB) mutator {
	t.Helper()
	m := mutator{names: slices.Sorted(maps.Keys(payloads))}
	for _, name := range m.names {
		_, body := read(t, name)
		m.bodies = append(m.bodies, body)
	}
	return m
}

// draw is one of the payloads with one node replaced by something that GitHub
// would not send.
func (m mutator) draw(t testing.TB, seed uint64) (event string, body []byte) {
	t.Helper()
	draw := rand.New(rand.NewPCG(seed, 3))
	i := draw.IntN(len(m.names))
	event, _, _ = strings.Cut(m.names[i], ".")
	var tree any
	if err := json.Unmarshal(m.bodies[i], &tree); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(replaced(draw, tree, json.RawMessage(`"\u0000BAD"`)))
	if err != nil {
		t.Fatal(err)
	}
	body = bytes.Replace(body, []byte(`"\u0000BAD"`), []byte(bad(draw)), 1)
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

// replaced is a tree with a node somewhere in it exchanged.
func replaced(draw *rand.Rand, node, by any) any {
	switch n := node.(type) {
	case map[string]any:
		if len(n) > 0 {
			key := slices.Sorted(maps.Keys(n))[draw.IntN(len(n))]
			n[key] = replaced(draw, n[key], by)
			return n
		}
	case []any:
		if len(n) > 0 && draw.IntN(2) == 0 {
			i := draw.IntN(len(n))
			n[i] = replaced(draw, n[i], by)
			return n
		}
	}
	return by
}

// FuzzMutated draws payloads that are nearly GitHub's.
func FuzzMutated(f *testing.F) {
	m := newMutator(f)
	for seed := range uint64(100) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		event, body := m.draw(t, seed)
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

// TestMutatedPayloadsLeaveLittleBehind keeps every event and error of some
// payloads, and looks at the heap; FuzzMutated looks at as many as there is time for.
func TestMutatedPayloadsLeaveLittleBehind(t *testing.T) {
	const n = 1_000
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	m := newMutator(t)
	kept := make([]any, 0, n)
	failed, read := 0, int64(0)
	before := heap()
	for seed := range uint64(n) {
		event, body := m.draw(t, seed)
		read += int64(len(body))
		got, err := webhook.Decode(event, body)
		checkWeight(t, got, err)
		if err != nil {
			failed++
			kept = append(kept, err)
			continue
		}
		kept = append(kept, got)
	}
	each := (heap() - before) / n
	runtime.KeepAlive(kept)
	t.Logf("%d payloads of %d MB, %d refused: %d bytes stay of each", n, read>>20, failed, each)
	if failed < n/5 || failed > n*4/5 {
		t.Errorf("%d of %d were refused: the mutations miss", failed, n)
	}
	if most := int64(1 << 10); each > most {
		t.Errorf("%d bytes stay of each, more than %d", each, most)
	}
}
