package output

import (
	"strconv"
	"strings"
)

// Quote makes a text that an untrusted source has chosen fit for a message of one line. It cuts a text of more than so many bytes,
// and quotes one that would not read as it is: one with control characters and, unless the text may have spaces, one with a space
// and the empty one.
func Quote(text string, longest int, spaces bool) string {
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	quoted := strconv.Quote(text)
	if quoted[1:len(quoted)-1] == text && (spaces || text != "" && !strings.Contains(text, " ")) {
		return text
	}
	return quoted
}
