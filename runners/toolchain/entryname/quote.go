package entryname

import (
	"strconv"
	"strings"
)

// Quote makes an untrusted name fit for a message.
func Quote(name string) string {
	if len(name) > maxShown {
		name = strings.ToValidUTF8(name[:maxShown], "") + "…"
	}
	quoted := strconv.Quote(name)
	if quoted[1:len(quoted)-1] == name {
		return name
	}
	return quoted
}
