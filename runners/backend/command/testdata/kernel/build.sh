set -e
sh -n kernel.sh
echo "building $KERNELGATE_VARIANT"
cp kernel.sh built.sh
