package kernels

import "maps"

// SameLaunch tells whether two variants with equal machine code are started in the
// same way: toggles may be in the launch and in the sizes of arguments.
func (m *Manifest) SameLaunch(a, b string) bool {
	if a == b {
		return true
	}
	va, errA := m.Variant(a)
	vb, errB := m.Variant(b)
	return errA == nil && errB == nil && maps.Equal(m.ToggleValues(a), m.ToggleValues(b)) && written(m.launchOf(va)) == written(m.launchOf(vb))
}
