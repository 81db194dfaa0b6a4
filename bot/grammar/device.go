package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/ident"
)

// on stands before the device of a command. A kernel with this name is named by its folder.
const on = "on"

// takeDevice takes "on DEVICE" out of the words of a command.
func takeDevice(words []string, device *string) (rest []string, err error) {
	for i := 0; i < len(words); i++ {
		if !strings.EqualFold(words[i], on) {
			rest = append(rest, words[i])
			continue
		}
		i++
		switch {
		case i == len(words):
			return nil, errors.New("on: the device is missing (write its label in the policy, such as `on h200`)")
		case *device != "":
			return nil, fmt.Errorf("on: %s is a second device (write one, or leave `on` out for all)", code(words[i]))
		case !ident.IsLabel(words[i]):
			return nil, fmt.Errorf("on: %s is not a device (write its label in the policy, such as `on h200`)", code(words[i]))
		}
		*device = words[i]
	}
	return slices.Clip(rest), nil
}

// deviceWords is what takeDevice reads.
func deviceWords(device string) []string {
	if device == "" {
		return nil
	}
	return []string{on, device}
}
