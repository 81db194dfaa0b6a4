package kernels

import (
	"fmt"
	"strings"
)

// maxBlock is the most elements that Triton loads at once.
const maxBlock = 1 << 20

// block is the block_shape of a Triton kernel's tensor descriptor. Triton cuts it into boxes itself.
func (m *TensorMap) block(env Env) ([]int, error) {
	box, err := axesOf(m.Box, env, maxBlock)
	if err != nil {
		return nil, err
	}
	elements := 1
	for i, n := range box {
		if n&(n-1) != 0 {
			return nil, &fault{&m.Box[i], fmt.Sprintf("is %d", n), "make it a power of two, as Triton needs"}
		}
		if elements *= n; elements > maxBlock {
			return nil, &fault{&m.Box[i], fmt.Sprintf("makes a block of more than %d elements", maxBlock), "make it smaller"}
		}
	}
	return box, nil
}

// descriptorType is Triton's name for a tensor descriptor.
func descriptorType(d DType, block []int) string {
	return fmt.Sprintf("tensordesc<%s[%s]>", tritonTypes[d], strings.Trim(strings.Join(strings.Fields(fmt.Sprint(block)), ", "), "[]"))
}

// checkDescriptors reports what of a tensor map Triton says itself, and what it has no descriptors of.
func (c *checker) checkDescriptors() {
	for i := range c.m.Arguments {
		a, at := &c.m.Arguments[i], itemOf(c.n.Child("arguments"), i).Child("tensor_map")
		if a.TensorMap == nil {
			continue
		}
		for _, field := range []string{"swizzle", "promotion"} {
			if at.Has(field) {
				c.errorf(at.Child(field), "is what compiler: triton says itself (delete it)")
			}
		}
		if a.DType == Bool {
			c.errorf(at, "Triton has no descriptors of %s (delete it, or write dtype: u8)", a.DType)
		}
	}
}
