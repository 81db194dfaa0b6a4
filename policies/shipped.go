// Package policies holds the policies that come with the program.
package policies

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed default.yaml l4.yaml h200.yaml cpu.yaml
var shipped embed.FS

// ShippedNames lists the policies that come with the program.
func ShippedNames() []string { return []string{"cpu", "default", "h200", "l4"} }

// Shipped is the text of a policy that comes with the program: default, which suits any
// kernel, or l4, h200 or cpu, which are the shipped kernels' own.
func Shipped(name string) ([]byte, error) {
	if !slices.Contains(ShippedNames(), name) {
		return nil, fmt.Errorf("no policy named %q is shipped (there are %s)", name, strings.Join(ShippedNames(), ", "))
	}
	return shipped.ReadFile(name + ".yaml")
}
