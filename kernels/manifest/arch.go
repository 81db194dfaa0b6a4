package manifest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// An Arch is an architecture to compile for, such as sm_89 or sm_90a.
type Arch string

var archText = regexp.MustCompile(`^sm_(75|80|86|87|88|89|90|100|101|103|110|120|121)([af]?)$`)

func (a *Arch) UnmarshalStrict(n *strict.Node) {
	text, _ := n.Text()
	parts := archText.FindStringSubmatch(text)
	if parts == nil {
		n.Errorf("%q is not an architecture (write sm_75 to sm_121, e.g. sm_89)", text)
		return
	}
	*a = Arch(text)
	if parts[2] == "a" && a.capability() < firstWithClusters || parts[2] == "f" && a.capability() < 100 {
		n.Errorf("%q does not exist: a begins with sm_90, f with sm_100 (write sm_%s)", text, parts[1])
	}
}

func (a *Arch) JSONSchema() map[string]any {
	return map[string]any{"title": "architecture", "type": "string", "pattern": archText.String()}
}

const firstWithClusters = 90

// capability returns the number in the name; 0 for an invalid name.
func (a Arch) capability() int {
	parts := archText.FindStringSubmatch(string(a))
	if parts == nil {
		return 0
	}
	v, _ := strconv.Atoi(parts[1])
	return v
}

// Device returns the device that runs the code: sm_90 for sm_90a.
func (a Arch) Device() string { return strings.TrimRight(string(a), "af") }

// ArchOf returns what a variant is compiled for: its own list, or the kernel's. The choice has the
// architectures of its variants.
func (m *Manifest) ArchOf(variant string) []Arch {
	if variant == Choice {
		var all []Arch
		for _, part := range m.Parts(Choice, "") {
			all = append(all, m.ArchOf(part)...)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	if v, _ := m.Variant(variant); v.Arch != nil {
		return v.Arch
	}
	return m.Arch
}

// checkArch checks that each variant's architectures fit its launch.
func (c *checker) checkArch() {
	if c.m.Mode != ModeCUDA {
		return
	}
	c.archAt(c.n.Child("arch"), c.m.Arch)
	for _, v := range c.m.Variants {
		c.archAt(c.n.Child("variants", v.Name, "arch"), v.Arch)
		c.checkCluster(v)
	}
}

func (c *checker) archAt(at *strict.Node, list []Arch) {
	if at.List() && len(list) == 0 {
		c.errorf(at, "is empty (write e.g. [sm_89])")
	}
	for i, arch := range list {
		if arch != "" && slices.Contains(list[:i], arch) {
			c.errorf(itemOf(at, i), "%q is named twice (delete one)", arch)
		}
	}
}

// checkCluster reports a launch that asks for what an architecture lacks, at the field nearest to the variant: its own
// architectures, else the field of its own launch, else the kernel's architectures.
func (c *checker) checkCluster(v Variant) {
	launch, own, place := c.m.launchOf(v), c.n.Child("variants", v.Name), c.n.Child("launch")
	if launch == nil {
		return
	}
	if v.Launch != nil {
		place = own.Child("launch")
	}
	for _, feature := range []struct {
		field, lacks, remove string
		asked                func(started) bool
	}{
		{"cluster", "no clusters", "delete the cluster", func(s started) bool { return len(s.Cluster) > 0 }},
		{"programmatic", "no programmatic dependent launch", "delete programmatic", func(s started) bool { return s.step >= 0 && launch.Steps[s.step].Programmatic }},
	} {
		starts := launch.starts()
		first := slices.IndexFunc(starts, feature.asked)
		if first < 0 {
			continue
		}
		field, at := starts[first].place(place).Child(feature.field), c.n.Child("arch")
		if v.Arch != nil {
			at = own.Child("arch")
		}
		for i, arch := range c.m.ArchOf(v.Name) {
			switch capability := arch.capability(); {
			case capability == 0 || capability >= firstWithClusters:
			case v.Launch != nil && v.Arch == nil:
				c.errorf(field, "the kernel's arch %q has %s (write e.g. arch: [sm_90] in the variant, or %s)", arch, feature.lacks, feature.remove)
			default:
				c.errorf(itemOf(at, i), "%q has %s, which %s asks for (write sm_90 or later, or %s)", arch, feature.lacks, field.Path(), feature.remove)
			}
		}
	}
}
