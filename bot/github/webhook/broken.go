package webhook

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

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
