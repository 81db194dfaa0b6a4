// For gcc and clang: a warning with its flag, an error, and a note.
int twice(int x);

static int unused(void) { return 1; }

int thrice(int x)
{
    int y = "text";
    return twice(x, y) + missing;
}
