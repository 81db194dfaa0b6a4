set -e
c++ -O1 test.cc -o test
c++ -O1 -Igooglebenchmark/include bench.cc -o bench -Lgooglebenchmark/lib -lbenchmark -lpthread -Wl,-rpath,'$ORIGIN/googlebenchmark/lib'
