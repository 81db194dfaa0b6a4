package openapi

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzMembers checks that members splits an object as encoding/json does, and that every other
// input gives an error.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { "a" : 1 , "b":[{},{"c":"}"}],"c":"\\","d":"\"","e":"\\\"}","f":null, "g" : {"h":{}} } `, "{\n\t\"a\": true\r\n}", `{"ä": -1.5e3, "a\u0062": ""}`,
		``, `[]`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":}`, `{"a" 1}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":"`, `{"a":"\`, `{"a":[`, `}`, `{,}`, `{"a":{]}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := members([]byte(text))
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &want) != nil || want == nil {
			return // members parses no values: decoding them reports the error
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, not %q (%v)", text, got, want, err)
		}
	})
}

// TestMembersRefuses checks the error and its position for inputs that are not objects.
func TestMembersRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"": "byte 0: no object begins here", "[]": "byte 0: no object begins here", `{"a"`: `byte 4: no colon after "a"`, `{"a":`: `byte 5: no value of "a"`,
		`{"a":1`: "byte 6: the object does not end", `{"a":}`: `byte 5: no value of "a"`, `{"a":1 "b":2}`: "byte 7: no comma between two members",
		`{a:1}`: "byte 1: no key: invalid character 'a' looking for beginning of value",
	} {
		if _, err := members([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
