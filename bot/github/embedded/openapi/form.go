package openapi

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/policies/ident"
)

var formSeed = maphash.MakeSeed()

// formOf hashes a payload so that payloads with equal hashes satisfy the same schemas. Such
// payloads have the same properties with the same types. Their short texts and small numbers are
// equal. Longer ones cannot be in an enumeration, so only their kind counts: time, URL, commit or
// text.
func formOf(event string, payload any) uint64 {
	var h maphash.Hash
	h.SetSeed(formSeed)
	h.WriteString(event)
	writeForm(&h, payload)
	return h.Sum64()
}

func writeForm(h *maphash.Hash, value any) {
	switch v := value.(type) {
	case map[string]any:
		h.WriteByte('{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			h.WriteString(name)
			h.WriteByte(0)
			writeForm(h, v[name])
		}
		h.WriteByte('}')
	case []any:
		h.WriteByte('[')
		for _, element := range v {
			writeForm(h, element)
		}
		h.WriteByte(']')
	case json.Number:
		h.WriteByte('0')
		if len(v) < 3 {
			h.WriteString(v.String())
		} else if _, err := v.Int64(); err != nil || v[0] == '-' {
			h.WriteByte('f')
		}
	case string:
		h.WriteString(formOfText(v))
		h.WriteByte(0)
	case bool:
		if v {
			h.WriteByte('t')
		}
		h.WriteByte('b')
	default:
		h.WriteByte('n')
	}
}

// formOfText returns the text itself if an enumeration may contain it, and otherwise its kind.
func formOfText(text string) string {
	const longestOnAList, longest = 45, 75
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return "\x01time"
	}
	if u, err := url.Parse(text); err == nil && u.IsAbs() && u.Host != "" {
		return "\x01address"
	}
	if len(text) > longest {
		return "\x01long"
	}
	if len(text) > longestOnAList {
		return "\x01text"
	}
	if ident.IsCommit(text) {
		return "\x01commit"
	}
	return text
}
