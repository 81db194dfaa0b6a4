#define _GNU_SOURCE
/* A CUDA driver without a GPU. "Device memory" is host memory, streams run at
 * once, and three kernels are known by name. It exists to check that arguments
 * arrive: what it stores comes only from what was passed.
 *
 * With -DFAKE_OLD it lacks what came with CUDA 11.8 and later.
 * With -DFAKE_USE_CUDA_H it is compiled against the real cuda.h, so that the
 * compiler compares every signature below with NVIDIA's.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef FAKE_USE_CUDA_H
#include <cuda.h>
#undef cuEventElapsedTime
#else
typedef int CUresult, CUdevice, CUdevice_attribute, CUfunction_attribute, CUlimit, CUjit_option, CUstreamCaptureMode;
typedef int CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill;
typedef unsigned long long CUdeviceptr;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct { char bytes[16]; } CUuuid;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct { cuuint64_t opaque[16]; } CUtensorMap;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef int CUmemAllocationHandleType, CUmemAllocationGranularity_flags;
typedef struct { int type, id; } CUmemLocation;
typedef struct { int type, requestedHandleTypes; CUmemLocation location; void *win32HandleMetaData; char allocFlags[8]; } CUmemAllocationProp;
typedef struct { CUmemLocation location; int flags; } CUmemAccessDesc;
typedef struct { int id; char pad[4]; union { char pad[64]; struct { unsigned x, y, z; } clusterDim; int cooperative, programmaticStreamSerializationAllowed, priority; unsigned sharedMemCarveout; } value; } CUlaunchAttribute;
typedef struct {
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned numAttrs;
} CUlaunchConfig;
#endif

/* --- what the tests read and set --- */

typedef struct {
	uint32_t grid[3], block[3], cluster[3], shared, cooperative, programmatic, priority, carveout, unused;
	uint64_t function, stream, count, size;
	uint8_t params[512];
} launch_record;

static launch_record last_launch;
static uint64_t last_args[12];
static char fail_name[64];
static int fail_code, fail_after, ticks, set_flags, retained, freed, captured_mode;
static __thread CUcontext current;

static int failing(const char *name)
{
	if (fail_code == 0 || strcmp(name, fail_name) != 0 || fail_after-- > 0)
		return 0;
	int code = fail_code;
	fail_code = 0;
	return code;
}

#define MAY_FAIL do { int c = failing(__func__); if (c) return c; } while (0)
#define NEEDS_CONTEXT do { if (!current) return 201; MAY_FAIL; } while (0)

void fake_fail(const char *name, int code, int after)
{
	strncpy(fail_name, name, sizeof fail_name - 1);
	fail_code = code;
	fail_after = after;
}
void fake_last_launch(launch_record *r) { *r = last_launch; }
void fake_last_args(uint64_t *a) { memcpy(a, last_args, sizeof last_args); }
int fake_flags(void) { return set_flags; }
int fake_retained(void) { return retained; }
int fake_freed(void) { return freed; }
int fake_capture_mode(void) { return captured_mode; }

/* --- the library --- */

CUresult cuInit(unsigned int flags) { MAY_FAIL; return flags == 0 ? 0 : 1; }
CUresult cuDriverGetVersion(int *v) { MAY_FAIL; *v = 12040; return 0; }

CUresult cuGetErrorName(CUresult e, const char **s)
{
	switch ((int)e) {
	case 1: *s = "CUDA_ERROR_INVALID_VALUE"; return 0;
	case 2: *s = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
	case 100: *s = "CUDA_ERROR_NO_DEVICE"; return 0;
	case 201: *s = "CUDA_ERROR_INVALID_CONTEXT"; return 0;
	case 700: *s = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
	}
	*s = NULL;
	return 1;
}
CUresult cuGetErrorString(CUresult e, const char **s)
{
	switch ((int)e) {
	case 1: *s = "invalid argument"; return 0;
	case 2: *s = "out of memory"; return 0;
	case 100: *s = "no CUDA-capable device is detected"; return 0;
	case 201: *s = "invalid device context"; return 0;
	case 700: *s = "an illegal memory access was encountered"; return 0;
	}
	*s = NULL;
	return 1;
}

CUresult cuDeviceGetCount(int *n) { MAY_FAIL; *n = 2; return 0; }
CUresult cuDeviceGet(CUdevice *d, int ordinal) { MAY_FAIL; if (ordinal < 0 || ordinal > 1) return 101; *d = ordinal; return 0; }
CUresult cuDeviceGetName(char *name, int len, CUdevice d) { MAY_FAIL; strncpy(name, d ? "Fake GPU B" : "Fake GPU A", len); return 0; }
CUresult cuDeviceGetUuid_v2(CUuuid *u, CUdevice d) { MAY_FAIL; for (int i = 0; i < 16; i++) u->bytes[i] = (char)(0xA0 + i + d); return 0; }
CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) { MAY_FAIL; *n = (size_t)141 << 30; return 0; }
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) { MAY_FAIL; *v = 1000 * (int)a + d; return 0; }
CUresult cuDeviceGetPCIBusId(char *s, int len, CUdevice d) { MAY_FAIL; strncpy(s, d ? "0000:3B:00.0" : "0000:17:00.0", len); return 0; }

static int the_context, the_module;
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice d, unsigned int flags) { MAY_FAIL; set_flags = flags; return 0; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) { MAY_FAIL; retained++; *c = (CUcontext)&the_context; return 0; }
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) { MAY_FAIL; retained--; return 0; }
CUresult cuCtxSetCurrent(CUcontext c) { MAY_FAIL; current = c; return 0; }
CUresult cuCtxSynchronize(void) { NEEDS_CONTEXT; return 0; }
CUresult cuCtxResetPersistingL2Cache(void) { NEEDS_CONTEXT; return 0; }

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) { NEEDS_CONTEXT; *p = (CUdeviceptr)(uintptr_t)calloc(1, n); return *p ? 0 : 2; }
CUresult cuMemFree_v2(CUdeviceptr p) { NEEDS_CONTEXT; free((void *)(uintptr_t)p); freed++; return 0; }

/* Memory to share is a memfd, and its handle the descriptor; a mapping is closed
 * to all until somebody asks for access. */
static int shareable(const CUmemAllocationProp *p) { return (int)p->type == 1 && (int)p->requestedHandleTypes == 1 && (int)p->location.type == 1; }
CUresult cuMemGetAllocationGranularity(size_t *n, const CUmemAllocationProp *p, CUmemAllocationGranularity_flags f)
{
	MAY_FAIL;
	*n = (size_t)2 << 20;
	return shareable(p) && f == 0 ? 0 : 1;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle *h, size_t n, const CUmemAllocationProp *p, unsigned long long flags)
{
	MAY_FAIL;
	if (!shareable(p) || n % ((size_t)2 << 20) || flags)
		return 1;
	int fd = memfd_create("fake", 0);
	if (fd < 0 || ftruncate(fd, (off_t)n) != 0)
		return 2;
	*h = (CUmemGenericAllocationHandle)fd;
	return 0;
}
CUresult cuMemExportToShareableHandle(void *to, CUmemGenericAllocationHandle h, CUmemAllocationHandleType t, unsigned long long flags)
{
	MAY_FAIL;
	*(int *)to = dup((int)h);
	return t == 1 && !flags ? 0 : 1;
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *h, void *from, CUmemAllocationHandleType t)
{
	MAY_FAIL;
	*h = (CUmemGenericAllocationHandle)dup((int)(uintptr_t)from);
	return t == 1 ? 0 : 1;
}
CUresult cuMemAddressReserve(CUdeviceptr *p, size_t n, size_t align, CUdeviceptr hint, unsigned long long flags)
{
	MAY_FAIL;
	void *at = mmap((void *)(uintptr_t)hint, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*p = (CUdeviceptr)(uintptr_t)at;
	return at != MAP_FAILED && !align && !flags ? 0 : 2;
}
CUresult cuMemMap(CUdeviceptr p, size_t n, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags)
{
	MAY_FAIL;
	void *at = mmap((void *)(uintptr_t)p, n, PROT_NONE, MAP_SHARED | MAP_FIXED, (int)h, (off_t)offset);
	return at != MAP_FAILED && !offset && !flags ? 0 : 1;
}
CUresult cuMemSetAccess(CUdeviceptr p, size_t n, const CUmemAccessDesc *d, size_t count)
{
	MAY_FAIL;
	if (count != 1 || (int)d->location.type != 1 || (int)d->flags != 3)
		return 1;
	return mprotect((void *)(uintptr_t)p, n, PROT_READ | PROT_WRITE) ? 1 : 0;
}
CUresult cuMemUnmap(CUdeviceptr p, size_t n)
{
	MAY_FAIL;
	return mmap((void *)(uintptr_t)p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED;
}
CUresult cuMemAllocHost_v2(void **p, size_t n) { MAY_FAIL; *p = calloc(1, n); return *p ? 0 : 2; }

/* Handles are small blocks whose first word says what they are. */
struct stream { int kind; struct graph *capture; int flags, broken; };
struct event { int kind; int tick; };
struct graph { int kind; size_t n; launch_record nodes[64]; };
enum { STREAM = 0x51, EVENT = 0x52, GRAPH = 0x53 };
static struct stream *stream_of(CUstream s) { struct stream *p = (struct stream *)s; return p && p->kind == STREAM ? p : NULL; }
#define ON_STREAM(h) NEEDS_CONTEXT; struct stream *st = stream_of(h); if (!st) return 400

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *h, size_t n, CUstream s) { ON_STREAM(s); memcpy((void *)(uintptr_t)d, h, n); return 0; }
CUresult cuMemcpyDtoHAsync_v2(void *h, CUdeviceptr d, size_t n, CUstream s) { ON_STREAM(s); memcpy(h, (void *)(uintptr_t)d, n); return 0; }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr e, size_t n, CUstream s) { ON_STREAM(s); memcpy((void *)(uintptr_t)d, (void *)(uintptr_t)e, n); return 0; }
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, CUstream s) { ON_STREAM(s); memset((void *)(uintptr_t)d, v, n); return 0; }
CUresult cuMemsetD32Async(CUdeviceptr d, unsigned int v, size_t n, CUstream s)
{
	ON_STREAM(s);
	for (size_t i = 0; i < n; i++)
		((uint32_t *)(uintptr_t)d)[i] = v;
	return 0;
}
/* The fake runs everything at once, so that all it can tell is whether the gate was closed. */
CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr at, uint32_t v, unsigned int flags)
{
	ON_STREAM(s);
	MAY_FAIL;
	return *(uint32_t *)(uintptr_t)at == 0 && v == 1 && flags == 1 ? 0 : 1;
}

/* --- kernels --- */

struct kernel { const char *name; size_t nparams, sizes[12]; int attrs[16]; int loaded; };
static struct kernel kernels[] = {
	{"vec_add", 4, {8, 8, 8, 4}, {0}, 0},           /* float *out, const float *a, const float *b, int n */
	{"every_kind", 9, {8, 4, 4, 8, 8, 4, 8, 2, 128}, {0}, 0},
	{"no_params", 0, {0}, {0}, 0},
	{"butterfly", 3, {8, 4, 4}, {0}, 0},            /* float *y, int half, int n: a pass of a Walsh-Hadamard transform */
};

CUresult cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned int n, CUjit_option *opts, void **values)
{
	NEEDS_CONTEXT;
	const char *text = image;
	if (n != 2 || opts[0] != 5 || opts[1] != 6)
		return 1;
	if (strncmp(text, "bad ", 4) == 0) {
		strncpy(values[0], text + 4, (size_t)(uintptr_t)values[1]);
		return 218;
	}
	*m = (CUmodule)&the_module;
	return 0;
}
CUresult cuModuleUnload(CUmodule m) { NEEDS_CONTEXT; return m == (CUmodule)&the_module ? 0 : 400; }
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name)
{
	NEEDS_CONTEXT;
	if (m != (CUmodule)&the_module)
		return 400;
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
		if (strcmp(name, kernels[i].name) == 0) {
			*f = (CUfunction)&kernels[i];
			return 0;
		}
	return 500;
}
static uint32_t the_global = 0x600D;
CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *n, CUmodule m, const char *name)
{
	NEEDS_CONTEXT;
	if (m != (CUmodule)&the_module || strcmp(name, "counter") != 0)
		return 500;
	*p = (CUdeviceptr)(uintptr_t)&the_global;
	*n = sizeof the_global;
	return 0;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) { NEEDS_CONTEXT; ((struct kernel *)f)->attrs[(int)a] = v; return 0; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads, size_t shared)
{
	NEEDS_CONTEXT;
	(void)f;
	*n = 2048 / threads - (int)(shared >> 16);
	return 0;
}
#ifndef FAKE_OLD
CUresult cuFuncLoad(CUfunction f) { NEEDS_CONTEXT; ((struct kernel *)f)->loaded = 1; return 0; }
CUresult cuFuncGetParamInfo(CUfunction f, size_t i, size_t *offset, size_t *size)
{
	struct kernel *k = (struct kernel *)f;
	NEEDS_CONTEXT;
	if (!k->loaded)
		return 913;
	if (i >= k->nparams)
		return 1;
	*offset = 0;
	for (size_t j = 0; j < i; j++)
		*offset += k->sizes[j];
	*size = k->sizes[i];
	return 0;
}
#endif

static void run(const launch_record *r)
{
	if (strcmp(((struct kernel *)(uintptr_t)r->function)->name, "butterfly") == 0) {
		float *y;
		int half, count;
		memcpy(&y, r->params, sizeof y);
		memcpy(&half, r->params + 8, sizeof half);
		memcpy(&count, r->params + 12, sizeof count);
		for (int i = 0; i < count; i++)
			if (i / half % 2 == 0) {
				const float a = y[i], b = y[i + half];
				y[i] = a + b;
				y[i + half] = a - b;
			}
	}
	if (strcmp(((struct kernel *)(uintptr_t)r->function)->name, "vec_add") != 0)
		return;
	float *p[3];
	int n;
	memcpy(p, r->params, sizeof p);
	memcpy(&n, r->params + sizeof p, sizeof n);
	for (int i = 0; i < n; i++)
		p[0][i] = p[1][i] + p[2][i];
}

static CUresult launch(launch_record *r, struct stream *st, struct kernel *k, void **params)
{
	r->function = (uint64_t)(uintptr_t)k;
	r->stream = (uint64_t)(uintptr_t)st;
	r->count = k->nparams;
	for (size_t i = 0; i < k->nparams; i++) {
		/* The strictest alignment a value of this size can ask for. */
		uintptr_t align = k->sizes[i] >= 128 ? 128 : k->sizes[i];
		if (((uintptr_t)params[i] & (align - 1)) != 0)
			return 716;
		memcpy(r->params + r->size, params[i], k->sizes[i]);
		r->size += k->sizes[i];
	}
	last_launch = *r;
	if (st->capture) {
		if (st->capture->n == 64)
			return 2;
		st->capture->nodes[st->capture->n++] = *r;
	} else
		run(r);
	ticks++;
	return 0;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
	unsigned int bz, unsigned int shared, CUstream s, void **params, void **extra)
{
	ON_STREAM(s);
	if (extra)
		return 1;
	launch_record r = {{gx, gy, gz}, {bx, by, bz}, {0, 0, 0}, shared, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}};
	return launch(&r, st, (struct kernel *)f, params);
}
#ifndef FAKE_OLD
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
	ON_STREAM(c->hStream);
	if (extra || c->numAttrs < 1)
		return 1;
	launch_record r = {{c->gridDimX, c->gridDimY, c->gridDimZ}, {c->blockDimX, c->blockDimY, c->blockDimZ}, {0},
		c->sharedMemBytes, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}};
	for (unsigned i = 0; i < c->numAttrs; i++) {
		const CUlaunchAttribute *a = &c->attrs[i];
		if (a->id == 2)
			r.cooperative = a->value.cooperative;
		else if (a->id == 6)
			r.programmatic = a->value.programmaticStreamSerializationAllowed;
		else if (a->id == 8)
			r.priority = a->value.priority;
		else if (a->id == 14)
			r.carveout = a->value.sharedMemCarveout;
		else if (a->id == 4)
			memcpy(r.cluster, &a->value.clusterDim, sizeof r.cluster);
		else
			return 1;
	}
	return launch(&r, st, (struct kernel *)f, params);
}
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base, const cuuint64_t *dims,
	const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave inter,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	NEEDS_CONTEXT;
	if ((uintptr_t)map % 128)
		return 1;
	uint64_t a[12] = {(uint64_t)type, rank, (uint64_t)(uintptr_t)base, dims[rank - 1], rank > 1 ? strides[rank - 2] : 0,
		box[rank - 1], steps[rank - 1], (uint64_t)inter, (uint64_t)swizzle, (uint64_t)promotion, (uint64_t)fill, 0};
	memcpy(last_args, a, sizeof a);
	memset(map, 0x5A, sizeof *map);
	((char *)map)[127] = 0x5B;
	return 0;
}
#endif

/* --- streams, events, graphs --- */

CUresult cuStreamCreate(CUstream *s, unsigned int flags)
{
	NEEDS_CONTEXT;
	struct stream *st = calloc(1, sizeof *st);
	st->kind = STREAM;
	st->flags = flags;
	*s = (CUstream)st;
	return flags == 1 ? 0 : 1;
}
CUresult cuStreamDestroy_v2(CUstream s) { ON_STREAM(s); free(st); return 0; }
CUresult cuStreamSynchronize(CUstream s) { ON_STREAM(s); if (st->capture) { st->broken = 1; return 900; } return 0; }
CUresult cuStreamQuery(CUstream s) { ON_STREAM(s); return 0; }
CUresult cuEventCreate(CUevent *e, unsigned int flags)
{
	NEEDS_CONTEXT;
	struct event *ev = calloc(1, sizeof *ev);
	ev->kind = EVENT;
	*e = (CUevent)ev;
	return flags == 0 ? 0 : 1;
}
static struct event *event_of(CUevent e) { struct event *p = (struct event *)e; return p && p->kind == EVENT ? p : NULL; }
CUresult cuEventDestroy_v2(CUevent e) { NEEDS_CONTEXT; if (!event_of(e)) return 400; free(e); return 0; }
CUresult cuEventRecord(CUevent e, CUstream s) { ON_STREAM(s); if (!event_of(e)) return 400; event_of(e)->tick = ticks; return 0; }
/* Every launch takes 0.0125 ms. */
#ifdef FAKE_OLD
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) { NEEDS_CONTEXT; *ms = 1000; return 0; }
#else
CUresult cuEventElapsedTime_v2(float *ms, CUevent a, CUevent b)
{
	NEEDS_CONTEXT;
	if (!event_of(a) || !event_of(b))
		return 400;
	*ms = 0.0125f * (float)(event_of(b)->tick - event_of(a)->tick);
	return 0;
}
#endif

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode)
{
	ON_STREAM(s);
	captured_mode = (int)mode;
	st->broken = 0;
	st->capture = calloc(1, sizeof *st->capture);
	st->capture->kind = GRAPH;
	return 0;
}
CUresult cuStreamEndCapture(CUstream s, CUgraph *g)
{
	ON_STREAM(s);
	struct graph *c = st->capture;
	st->capture = NULL;
	if (st->broken) {
		free(c);
		*g = NULL;
		return 901;
	}
	*g = (CUgraph)c;
	return 0;
}
CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n) { NEEDS_CONTEXT; if (nodes) return 1; *n = ((struct graph *)g)->n; return 0; }
CUresult cuGraphInstantiateWithFlags(CUgraphExec *x, CUgraph g, unsigned long long flags)
{
	NEEDS_CONTEXT;
	struct graph *c = malloc(sizeof *c);
	memcpy(c, g, sizeof *c);
	*x = (CUgraphExec)c;
	return flags == 0 ? 0 : 1;
}
CUresult cuGraphUpload(CUgraphExec x, CUstream s) { ON_STREAM(s); return ((struct graph *)x)->kind == GRAPH ? 0 : 400; }
CUresult cuGraphLaunch(CUgraphExec x, CUstream s)
{
	ON_STREAM(s);
	struct graph *c = (struct graph *)x;
	if (c->kind != GRAPH)
		return 400;
	for (size_t i = 0; i < c->n; i++, ticks++)
		run(&c->nodes[i]);
	return 0;
}
CUresult cuGraphExecDestroy(CUgraphExec x) { NEEDS_CONTEXT; free(x); freed++; return 0; }
CUresult cuGraphDestroy(CUgraph g) { NEEDS_CONTEXT; free(g); freed++; return 0; }
