# Prints what the built kernel tells it to: times of $us microseconds and a norm
# error of $norm, except where the kernel redefines one of the functions.
us=100 norm=0.0001

before() { :; }
print_times() { echo "{\"shape\":\"$1\",\"us\":[$us,$us,900]}" >&3; }
print_figures() { # shape, and more keys
    echo "{\"shape\":\"$1\"${2:+,$2},\"elements\":64,\"max_abs\":0.001,\"mean_abs\":0.0001,\"norm\":$norm,\"bad\":0,\"nan\":0}" >&3
}
after() { :; }

. ./built.sh
before
if [ "$KERNELGATE_MODE" = performance ]; then
    for shape in $(echo "$KERNELGATE_SHAPES" | tr '{' '\n' | sed -n 's/.*"name":"\([^"]*\)".*/\1/p'); do
        print_times "$shape"
        print_figures "$shape"
    done
else
    echo "$KERNELGATE_CASES" | sed 's/},{"shape"/}\n{"shape"/g' |
        sed -n 's/.*"shape":"\([^"]*\)".*"seed":\([0-9]*\),"distribution":"\([^"]*\)".*/\1 \2 \3/p' |
        while read -r shape seed distribution; do
            print_figures "$shape" "\"seed\":$seed,\"distribution\":\"$distribution\""
        done
fi
after
