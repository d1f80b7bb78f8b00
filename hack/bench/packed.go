package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

var packedCases = []benchCase{
	{"gzip", "pages of 500 results to callers who take them plain, with gzip and with zstd, in turns", onEngine(0, packedPages)},
}

// mostPacked is how many times as long a packed page may take as a plain one.
const mostPacked = 1.5

func packedPages(ctx context.Context, r *run, e *engine) error {
	if _, err := e.addSchool(ctx, "school"); err != nil {
		return err
	}
	if err := e.superuser(ctx, "registrar", `VACUUM ANALYZE`, `CHECKPOINT`); err != nil {
		return err
	}
	key, err := e.key(ctx, "school")
	if err != nil {
		return err
	}
	ways := []struct{ name, header string }{{"plain", ""}, {"gzip", "\r\nAccept-Encoding: gzip"}, {"zstd", "\r\nAccept-Encoding: zstd"}}
	took, bytes := make([]times, len(ways)), make([]int, len(ways))
	profiled := e.profiles(ctx, r, r.lasting(5*time.Second))
	for i := range r.size(500) + 2 {
		for w, way := range ways {
			began := time.Now()
			page := request{http.MethodGet, "127.0.0.1:" + strconv.Itoa(e.settings.Ports.API), "/api/v1/results/?limit=500", partnerKey(key) + way.header, ""}
			err := e.lines.send(ctx, page, func(status int, body []byte) error {
				if bytes[w] = len(body); status != http.StatusOK {
					return fmt.Errorf("%s: %d %s", way.name, status, body)
				}
				return nil
			})
			if err != nil {
				return err
			}
			if i >= 2 { // connections and plans
				took[w] = append(took[w], time.Since(began))
			}
		}
	}
	profiled()
	for w, way := range ways {
		r.step(fmt.Sprintf("500 results, %s, %d KiB", way.name, bytes[w]>>10), sorted(took[w]), 0)
		if w > 0 {
			ratio := float64(took[w].At(.5)) / float64(took[0].At(.5))
			r.verdict("500 results with "+way.name+" : plain", ratio <= mostPacked, fmt.Sprintf("p50 at most %.1f times", mostPacked), "%.2f times", ratio)
		}
	}
	return e.printStatements(ctx, r)
}
