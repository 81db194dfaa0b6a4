package manifest

import "slices"

// A setting is a scalar that only the kernel needs: a number of splits, the strides of a tile. It belongs to the implementation, as
// the launch does, and like the launch it is computed from dims and toggles. The reference does not see it, so that no setting can
// change the expected outputs. Neither seeds nor inputs have names in expressions, so that no setting can tell one launch of a
// size from another.

// scalar is the expression of a scalar argument's value.
func (a *Argument) scalar() *Expr {
	if a.Setting != nil {
		return a.Setting
	}
	return a.Value
}

// scalar is the expression of a field that is one scalar; nil for other fields.
func (f *Field) scalar() *Expr {
	if f.Setting != nil {
		return f.Setting
	}
	return f.Value
}

// elements is the expressions of a field that is an array.
func (f *Field) elements() []Expr {
	if f.Settings != nil {
		return f.Settings
	}
	return f.Array
}

// parts is how many members a field counts for.
func (f *Field) parts() int { return max(1, len(f.elements())) }

// settings is the expressions of an argument that belong to the implementation, in their order.
func (a *Argument) settings() []*Expr {
	var all []*Expr
	if a.Setting != nil {
		all = append(all, a.Setting)
	}
	for i := range a.Fields {
		if f := &a.Fields[i]; f.Setting != nil {
			all = append(all, f.Setting)
		}
		for k := range a.Fields[i].Settings {
			all = append(all, &a.Fields[i].Settings[k])
		}
	}
	return all
}

// settingTexts is the settings of an argument as they are written.
func (a *Argument) settingTexts() []string {
	var all []string
	if a.Setting != nil {
		all = append(all, a.Name+": "+written(a.Setting))
	}
	for _, f := range a.Fields {
		switch {
		case f.Setting != nil:
			all = append(all, a.Name+"."+f.Name+": "+written(f.Setting))
		case f.Settings != nil:
			all = append(all, a.Name+"."+f.Name+": "+written(f.Settings))
		}
	}
	return all
}

// checkSettings keeps the number of values that the base has: both sides are passed the same arguments.
func (c *checker) checkSettings(base *Manifest) {
	for i := range c.m.Arguments {
		a := &c.m.Arguments[i]
		was, ok := base.argument(a.Name)
		if !ok {
			continue
		}
		for k, f := range a.Fields {
			at := slices.IndexFunc(was.Fields, func(o Field) bool { return o.Name == f.Name })
			if at < 0 || f.Settings == nil || len(was.Fields[at].Settings) == len(f.Settings) {
				continue
			}
			place := itemOf(itemOf(c.n.Child("arguments"), i).Child("fields"), k).Child("settings")
			c.errorf(place, "has %d elements, and %d in the base: how many the struct has is part of the problem (keep their number, or have the base changed first)", len(f.Settings), len(was.Fields[at].Settings))
		}
	}
}

// checkModeOfSettings refuses settings where one program calls both sides.
func (c *checker) checkModeOfSettings() {
	if c.m.Mode != ModeCPU {
		return
	}
	for i := range c.m.Arguments {
		a, at := &c.m.Arguments[i], itemOf(c.n.Child("arguments"), i)
		if a.Setting != nil {
			c.errorf(at.Child("setting"), "is for kernels of cuda mode (write value)")
		}
		for k, f := range a.Fields {
			place := itemOf(at.Child("fields"), k)
			if f.Setting != nil {
				c.errorf(place.Child("setting"), "is for kernels of cuda mode (write value)")
			}
			if f.Settings != nil {
				c.errorf(place.Child("settings"), "is for kernels of cuda mode (write array)")
			}
		}
	}
}
