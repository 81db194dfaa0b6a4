[ "$KERNELGATE_MODE" = performance ] || exit 3
echo '{"shape":"mission","us":[40,42,44]}'
