package manifest

import (
	"regexp"
	"slices"
	"strings"
)

var moduleName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$`)

// maxStandIns bounds the modules of one list.
const maxStandIns = 32

// checkStandIns checks the names of modules that are not imported as they are.
func (c *checker) checkStandIns() {
	for _, list := range []struct {
		field   string
		names   []string
		example string
	}{{"skip_init", c.m.SkipInit, "mypkg.ops"}, {"stubs", c.m.Stubs, "apex or mypkg.distributed"}} {
		at := c.n.Child(list.field)
		if len(list.names) > maxStandIns {
			c.errorf(at, "has %d names (write at most %d, or an entry file that imports the kernel)", len(list.names), maxStandIns)
		}
		for i, name := range list.names {
			top, _, _ := strings.Cut(name, ".")
			switch {
			case !moduleName.MatchString(name):
				c.errorf(itemOf(at, i), "%q is no name of a module (write it as the sources import it, e.g. %s)", name, list.example)
			case top == "triton":
				c.errorf(itemOf(at, i), "%q compiles the kernel (delete it)", name)
			case slices.Contains(list.names[:i], name):
				c.errorf(itemOf(at, i), "%q is named twice (delete one)", name)
			case list.field == "stubs" && slices.Contains(c.m.SkipInit, name):
				c.errorf(itemOf(at, i), "%q is under skip_init too (keep it here if no module below it is needed, or there)", name)
			}
		}
	}
}
