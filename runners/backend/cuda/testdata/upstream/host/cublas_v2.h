// Stands in for the header of cuBLAS, which a file includes and its kernel does not use.
#pragma once
