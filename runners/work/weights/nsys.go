package weights

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver of nsys' exports

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// readNsys reads an SQLite export of nsys. Times there are nanoseconds. A table or column that the program gave no reason to
// write is missing. The dims of operators are never recorded.
func readNsys(file string) (t *Trace, err error) {
	full, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: full, RawQuery: "mode=ro&immutable=1"}).String())
	if err != nil {
		return nil, fmt.Errorf("opening the export: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	x := nsysExport{db}
	kernels, err := x.columns("CUPTI_ACTIVITY_KIND_KERNEL")
	if err != nil {
		return nil, err
	}
	t = &Trace{Tool: manifest.TraceNsys, Devices: map[int]string{}}
	if len(kernels) == 0 {
		return t, nil // nsys makes no table of what did not happen
	}
	for _, need := range []string{"start", "end", "gridX", "gridY", "gridZ", "correlationId", "deviceId"} {
		if !slices.Contains(kernels, need) {
			return nil, fmt.Errorf("the table CUPTI_ACTIVITY_KIND_KERNEL has no column %s (export it with a newer nsys)", need)
		}
	}
	called, err := x.calls(kernels)
	if err != nil {
		return nil, err
	}
	if err := x.launches(t, kernels, called); err != nil {
		return nil, err
	}
	if err := x.ranges(t); err != nil {
		return nil, err
	}
	if err := x.devices(t); err != nil {
		return nil, err
	}
	t.sort()
	return t, nil
}

type nsysExport struct{ db *sql.DB }

// columns lists those of a table; none if there is no such table.
func (x nsysExport) columns(table string) ([]string, error) {
	var all []string
	err := x.each(`SELECT name FROM pragma_table_info(?)`, []any{table}, func(scan func(...any) error) error {
		var name string
		if err := scan(&name); err != nil {
			return err
		}
		all = append(all, name)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the table %s: %w", table, err)
	}
	return all, nil
}

func (x nsysExport) each(query string, args []any, do func(scan func(...any) error) error) (err error) {
	rows, err := x.db.Query(query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := do(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// A nsysCall is a call of the runtime or the driver, by process: each process counts its correlations itself.
type nsysCall struct{ process, correlation int64 }

// The process is a part of nsys' global ids of processes and threads.
const nsysProcess = `/ 0x1000000 % 0x1000000`

// calls is when the program called what a correlation belongs to, in nanoseconds.
func (x nsysExport) calls(kernels []string) (map[nsysCall]float64, error) {
	all := map[nsysCall]float64{}
	for _, table := range []string{"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"} {
		columns, err := x.columns(table)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(columns, "correlationId") || !slices.Contains(columns, "start") {
			continue
		}
		process := "0"
		if slices.Contains(columns, "globalTid") && slices.Contains(kernels, "globalPid") {
			process = "globalTid " + nsysProcess
		}
		err = x.each(`SELECT start, correlationId, `+process+` FROM `+table, nil, func(scan func(...any) error) error {
			var start float64
			var call nsysCall
			if err := scan(&start, &call.correlation, &call.process); err != nil {
				return err
			}
			all[call] = start
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the table %s: %w", table, err)
		}
	}
	return all, nil
}

func (x nsysExport) launches(t *Trace, columns []string, called map[nsysCall]float64) error {
	name := ""
	for _, column := range []string{"demangledName", "mangledName", "shortName"} {
		if name == "" && slices.Contains(columns, column) {
			name = column
		}
	}
	if name == "" {
		return errors.New("the table CUPTI_ACTIVITY_KIND_KERNEL has no names (export it with a newer nsys)")
	}
	process := "0"
	if slices.Contains(columns, "globalPid") {
		process = "k.globalPid " + nsysProcess
	}
	query := `SELECT k.start, k.end, k.deviceId, k.gridX, k.gridY, k.gridZ, k.correlationId, ` + process + `, s.value
		FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.` + name
	err := x.each(query, nil, func(scan func(...any) error) error {
		var l Launch
		var end float64
		var call nsysCall
		if err := scan(&l.Start, &end, &l.Device, &l.Grid[0], &l.Grid[1], &l.Grid[2], &call.correlation, &call.process, &l.Name); err != nil {
			return err
		}
		if end < l.Start {
			return nil // it had not ended
		}
		l.Called = l.Start
		if at, ok := called[call]; ok {
			l.Called = at
		}
		l.Micros, l.Start, l.Called = (end-l.Start)/1e3, l.Start/1e3, l.Called/1e3
		t.Launches = append(t.Launches, l)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the table CUPTI_ACTIVITY_KIND_KERNEL: %w", err)
	}
	return nil
}

// ranges reads the NVTX ranges of the program. Their text stands in the table, or among all strings.
func (x nsysExport) ranges(t *Trace) error {
	columns, err := x.columns("NVTX_EVENTS")
	if err != nil || len(columns) == 0 {
		return err
	}
	text, join := "n.text", ""
	if slices.Contains(columns, "textId") {
		text, join = "COALESCE(n.text, s.value)", " LEFT JOIN StringIds s ON s.id = n.textId"
		if !slices.Contains(columns, "text") {
			text = "s.value"
		}
	}
	err = x.each(`SELECT n.start, n.end, `+text+` FROM NVTX_EVENTS n`+join+` WHERE n.end IS NOT NULL AND `+text+` IS NOT NULL`, nil, func(scan func(...any) error) error {
		var r Range
		if err := scan(&r.Start, &r.End, &r.Name); err != nil {
			return err
		}
		r.Start, r.End, r.Name = r.Start/1e3, r.End/1e3, strings.TrimSpace(r.Name)
		t.Ranges = append(t.Ranges, r)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the table NVTX_EVENTS: %w", err)
	}
	return nil
}

func (x nsysExport) devices(t *Trace) error {
	columns, err := x.columns("TARGET_INFO_GPU")
	if err != nil || !slices.Contains(columns, "id") || !slices.Contains(columns, "name") {
		return err
	}
	err = x.each(`SELECT id, name FROM TARGET_INFO_GPU`, nil, func(scan func(...any) error) error {
		var id int
		var name string
		if err := scan(&id, &name); err != nil {
			return err
		}
		t.Devices[id] = name
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the table TARGET_INFO_GPU: %w", err)
	}
	return nil
}
