package openapi

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestForms checks that payloads that a schema may distinguish have different hashes.
func TestForms(t *testing.T) {
	const first = `{"a": "opened", "n": 1234, "at": "2026-01-01T00:00:00Z", "url": "https://example.com/1", "l": [null, true], "sha": "0123456789012345678901234567890123456789"}`
	form := func(event, text string) uint64 {
		t.Helper()
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		return formOf(event, value)
	}
	want := form("push", first)
	if got := form("push", `{"n": 77777, "a": "opened", "at": "2025-02-01T00:00:09Z", "url": "https://example.com/2?x", "l": [null, true], "sha": "abcdef6789012345678901234567890123456789"}`); got != want {
		t.Error("other numbers, times, addresses and commits are another form")
	}
	for name, text := range map[string]string{
		"another word":     `{"a": "closed", "n": 1234, "at": "2026-01-01T00:00:00Z", "url": "https://example.com/1", "l": [null, true], "sha": "0123456789012345678901234567890123456789"}`,
		"a fraction":       `{"a": "opened", "n": 12.5, "at": "2026-01-01T00:00:00Z", "url": "https://example.com/1", "l": [null, true], "sha": "0123456789012345678901234567890123456789"}`,
		"below zero":       `{"a": "opened", "n": -1234, "at": "2026-01-01T00:00:00Z", "url": "https://example.com/1", "l": [null, true], "sha": "0123456789012345678901234567890123456789"}`,
		"no time":          `{"a": "opened", "n": 1234, "at": "2026-01-01", "url": "https://example.com/1", "l": [null, true], "sha": "0123456789012345678901234567890123456789"}`,
		"no address":       `{"a": "opened", "n": 1234, "at": "2026-01-01T00:00:00Z", "url": "example.com/1", "l": [null, true], "sha": "0123456789012345678901234567890123456789"}`,
		"a null":           `{"a": "opened", "n": null, "at": "2026-01-01T00:00:00Z", "url": "https://example.com/1", "l": [null, true], "sha": "0123456789012345678901234567890123456789"}`,
		"a shorter list":   `{"a": "opened", "n": 1234, "at": "2026-01-01T00:00:00Z", "url": "https://example.com/1", "l": [null], "sha": "0123456789012345678901234567890123456789"}`,
		"a number as text": `{"a": "opened", "n": "1234", "at": "2026-01-01T00:00:00Z", "url": "https://example.com/1", "l": [null, true], "sha": "0123456789012345678901234567890123456789"}`,
		"one less":         `{"a": "opened", "n": 1234, "at": "2026-01-01T00:00:00Z", "url": "https://example.com/1", "l": [null, true]}`,
		"one more":         `{"a": "opened", "b": 1, "n": 1234, "at": "2026-01-01T00:00:00Z", "url": "https://example.com/1", "l": [null, true], "sha": "0123456789012345678901234567890123456789"}`,
		"another commit":   `{"a": "opened", "n": 1234, "at": "2026-01-01T00:00:00Z", "url": "https://example.com/1", "l": [null, true], "sha": "x123456789012345678901234567890123456789"}`,
	} {
		if form("push", text) == want {
			t.Errorf("%s is the same form", name)
		}
	}
	if form("ping", first) == want {
		t.Error("another event is the same form")
	}
}
