package cpu

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners/problem"
)

// The stub is the main function of the process that runs the kernel. It maps
// the shared memory, waits for a command, calls the kernel once for every slot
// of the batch, and answers with one byte. It holds neither clock nor expected
// output, so there is nothing in its process worth patching.
//
// A slot begins with a table of one 8-byte word per argument: the offset of an
// array in the memory, or the bits of a scalar.
const stubText = `#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

%s;

static int all(int fd, void *buffer, size_t size, int reads)
{
    char *at = buffer;
    while (size > 0) {
        ssize_t n = reads ? read(fd, at, size) : write(fd, at, size);
        if (n <= 0)
            return 0;
        at += n;
        size -= (size_t)n;
    }
    return 1;
}

static void call(char *memory, uint64_t slot)
{
    uint64_t word[%d];
    memcpy(word, memory + slot, sizeof word);
    %s(%s);
}

int main(void)
{
    struct stat about;
    uint64_t command[3]; /* first slot, distance between slots, number of slots */
    char *memory, done = 'k';

    if (fstat(%d, &about) != 0)
        return 70;
    memory = mmap(0, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, %d, 0);
    if (memory == MAP_FAILED)
        return 71;
    while (all(%d, command, sizeof command, 1)) {
        for (uint64_t i = 0; i < command[2]; i++)
            call(memory, command[0] + i * command[1]);
        if (!all(%d, &done, 1, 0))
            return 72;
    }
    return 0;
}
`

// Descriptors of the child, in the order of the sandbox's ExtraFiles.
const (
	fdMemory = 3 + iota
	fdCommand
	fdReply
)

var cTypes = map[string]string{
	"e4m3": "uint8_t", "e5m2": "uint8_t", "u8": "uint8_t", "i8": "int8_t", "f16": "uint16_t", "bf16": "uint16_t",
	"f32": "float", "f64": "double", "i32": "int32_t", "i64": "int64_t",
}

// stub writes the C main for an entry point with the given prototype and
// arguments.
func stub(prototype, entry string, args []problem.Arg) string {
	var pass []string
	for i, a := range args {
		if a.Access == kernels.Scalar {
			pass = append(pass, fmt.Sprintf("*(%s *)&word[%d]", cTypes[string(a.DType)], i))
		} else {
			pass = append(pass, fmt.Sprintf("(void *)(memory + word[%d])", i))
		}
	}
	return fmt.Sprintf(stubText, strings.TrimSuffix(prototype, ";"), len(args), entry, strings.Join(pass, ", "), fdMemory, fdMemory, fdCommand, fdReply)
}
