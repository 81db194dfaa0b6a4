# Prints what the built kernel defines: times of $us microseconds and a norm
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
# Only the shell reads the request: every round starts several of these scripts.
if [ "$KERNELGATE_MODE" = performance ]; then
    rest=$KERNELGATE_SHAPES
    while [ "$rest" != "${rest#*\"name\":\"}" ]; do
        rest=${rest#*\"name\":\"}
        shape=${rest%%\"*}
        print_times "$shape"
        print_figures "$shape"
    done
else
    rest=$KERNELGATE_CASES
    while [ "$rest" != "${rest#*\"shape\":\"}" ]; do
        rest=${rest#*\"shape\":\"}
        shape=${rest%%\"*}
        rest=${rest#*\"seed\":}
        seed=${rest%%,*}
        rest=${rest#*\"distribution\":\"}
        distribution=${rest%%\"*}
        print_figures "$shape" "\"seed\":$seed,\"distribution\":\"$distribution\""
    done
fi
after
