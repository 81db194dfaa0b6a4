/* A management library without a GPU: two devices, or FAKE_GPUS of them, whose figures are known. FAKE_NAMES are other names
 * for them, FAKE_UUID what their UUIDs begin with.
 * With -DFAKE_OLD it is a library from before driver 535, with -DFAKE_NEW one
 * that has dropped what CUDA 13 deprecates. With -DFAKE_USE_NVML_H it is
 * compiled against the real nvml.h, so that the compiler compares every
 * signature below with NVIDIA's.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef FAKE_USE_NVML_H
#include <nvml.h>
#else
typedef int nvmlReturn_t, nvmlClockType_t, nvmlTemperatureSensors_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t, nvmlEnableState_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct { char busIdLegacy[16]; unsigned domain, bus, device, pciDeviceId, pciSubSystemId; char busId[32]; } nvmlPciInfo_t;
typedef struct { unsigned pid; unsigned long long usedGpuMemory; unsigned gpuInstanceId, computeInstanceId; } nvmlProcessInfo_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef struct { nvmlDevice_t device; unsigned long long eventType, eventData; unsigned gpuInstanceId, computeInstanceId; } nvmlEventData_t;
typedef struct { unsigned version; nvmlTemperatureSensors_t sensorType; int temperature; } nvmlTemperature_t;
typedef struct { unsigned fieldId, scopeId; long long timestamp, latencyUsec; int valueType; nvmlReturn_t nvmlReturn; union { double dVal; unsigned uiVal; unsigned long long ullVal; } value; } nvmlFieldValue_t;
#endif

#ifndef FAKE_GPUS
#define FAKE_GPUS 2
#endif
#ifndef FAKE_UUID
#define FAKE_UUID "GPU-"
#endif
static int devices[FAKE_GPUS], opened, running = 2, fail_code;
static char fail_name[64];

void fake_fail(const char *name, int code) { snprintf(fail_name, sizeof fail_name, "%s", name); fail_code = code; }
void fake_running(int n) { running = n; }
int fake_opened(void) { return opened; }

/* One event set for all: the Xids of device 0 that were raised since it was asked for. */
static int event_sets, listening;
static unsigned long long xids[8];
static unsigned raised, told;
void fake_xid(unsigned long long x) { if (listening && raised < 8) xids[raised++] = x; }
int fake_event_sets(void) { return event_sets; }

#define MAY_FAIL do { if (fail_code && !strcmp(__func__, fail_name)) { int c = fail_code; fail_code = 0; return c; } } while (0)
#define ASK(d) do { if (!opened) return 1; if ((int *)(d) < devices || (int *)(d) >= devices + FAKE_GPUS) return 2; MAY_FAIL; } while (0)
static int index_of(nvmlDevice_t d) { return (int)((int *)d - devices); }

nvmlReturn_t nvmlInit_v2(void) { MAY_FAIL; opened++; return 0; }
nvmlReturn_t nvmlShutdown(void) { MAY_FAIL; opened--; return 0; }
const char *nvmlErrorString(nvmlReturn_t r)
{
	switch ((int)r) {
	case 3: return "Not Supported";
	case 6: return "Not Found";
	case 9: return "Driver Not Loaded";
	case 13: return "Function Not Found";
	case 999: return NULL;
	}
	return "Unknown Error";
}
nvmlReturn_t nvmlSystemGetDriverVersion(char *s, unsigned int n) { MAY_FAIL; snprintf(s, n, "580.82.07"); return 0; }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *n) { MAY_FAIL; *n = FAKE_GPUS; return 0; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *d) { MAY_FAIL; if (i >= FAKE_GPUS) return 2; *d = (nvmlDevice_t)&devices[i]; return 0; }
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *u, nvmlDevice_t *d) { if (strcmp(u, "GPU-b")) return 6; *d = (nvmlDevice_t)&devices[1]; return 0; }
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *p, nvmlDevice_t *d) { if (strcmp(p, "0000:17:00.0")) return 6; *d = (nvmlDevice_t)&devices[0]; return 0; }
#ifdef FAKE_NAMES
static const char *names[] = FAKE_NAMES;
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *s, unsigned int n) { ASK(d); snprintf(s, n, "%s", names[index_of(d)]); return 0; }
#else
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *s, unsigned int n) { ASK(d); snprintf(s, n, "Fake GPU %c", 'A' + index_of(d)); return 0; }
#endif
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *s, unsigned int n) { ASK(d); snprintf(s, n, FAKE_UUID "%c", 'a' + index_of(d)); return 0; }
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t d, unsigned int *n) { ASK(d); *n = FAKE_GPUS - 1 - index_of(d); return 0; }
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *p)
{
	ASK(d);
	memset(p, 0xEE, sizeof *p);
	snprintf(p->busId, sizeof p->busId, "00000000:%02X:00.0", index_of(d) ? 0x3B : 0x17);
	return 0;
}
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t t, unsigned int *mhz) { ASK(d); *mhz = 1000 + (int)t; return 0; }
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t t, unsigned int *mhz) { ASK(d); *mhz = 2000 + (int)t; return 0; }
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, unsigned long long *r) { ASK(d); *r = 0x1; return 0; }
#ifndef FAKE_OLD
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, unsigned long long *r) { ASK(d); *r = 0x8000000000000064ull; return 0; }
#endif
#ifndef FAKE_NEW
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t s, unsigned int *t) { ASK(d); if ((int)s != 0) return 2; *t = 41; return 0; }
#endif
#ifndef FAKE_OLD
nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t d, nvmlTemperature_t *t)
{
	ASK(d);
	if (t->version != (sizeof *t | 1u << 24))
		return 25;
	t->temperature = -42;
	return 0;
}
#endif
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned int *mw) { ASK(d); *mw = 123456; return 0; }
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t d, unsigned long long *mj) { ASK(d); *mj = (5ull << 32) + 250; return 0; }
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *f)
{
	ASK(d);
	if (n != 1)
		return 2;
#ifdef FAKE_OLD
	f->nvmlReturn = f->fieldId == 186 ? 3 : 2;
#else
	f->nvmlReturn = f->fieldId == 186 ? 0 : 2;
	f->valueType = 1;
	f->value.uiVal = 654321;
#endif
	return 0;
}
#ifndef FAKE_OLD
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned int *n, nvmlProcessInfo_t *p)
{
	ASK(d);
	int room = (int)*n;
	*n = running;
	if (room < running)
		return 7;
	for (int i = 0; i < running; i++) {
		p[i].pid = 4000000000u + i;
		p[i].usedGpuMemory = i % 2 ? ~0ull : (5ull << 32) + i;
		p[i].gpuInstanceId = p[i].computeInstanceId = ~0u;
	}
	return 0;
}
#endif
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t t, nvmlEccCounterType_t c, unsigned long long *n)
{
	ASK(d);
	*n = (7ull << 40) + 10 * (int)t + (int)c;
	return 0;
}
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, nvmlEnableState_t *now, nvmlEnableState_t *pending) { ASK(d); *now = index_of(d); *pending = 1; return 0; }
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t d, nvmlEnableState_t *m) { ASK(d); *m = 1; return 0; }
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) { MAY_FAIL; event_sets++; *set = (nvmlEventSet_t)xids; return 0; }
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) { MAY_FAIL; if ((void *)set != xids) return 2; event_sets--; return 0; }
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long kinds, nvmlEventSet_t set)
{
	ASK(d);
	if (kinds != 0x8 || (void *)set != xids || index_of(d))
		return 3;
	listening = 1;
	return 0;
}
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int ms)
{
	(void)ms;
	MAY_FAIL;
	if ((void *)set != xids)
		return 2;
	if (told == raised)
		return 10;
	*data = (nvmlEventData_t){(nvmlDevice_t)&devices[0], 0x8, xids[told++], ~0u, ~0u};
	return 0;
}
