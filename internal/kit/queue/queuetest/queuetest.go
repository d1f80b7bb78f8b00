// Package queuetest gives every test an empty Redis of its own: a numbered database of
// the server at TEST_REDIS_URL that no other running test has. Database 0 keeps the list
// of who has which.
package queuetest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/internal/kit/queue"
)

// New returns a client of a database that goes with the test. Empty it with FlushDB:
// FlushAll would empty other tests' too.
func New(t testing.TB) redis.UniversalClient {
	t.Helper()
	rdb, err := queue.Connect(URL(t), queue.TLS{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// URL returns the address of a database that goes with the test.
func URL(t testing.TB) string {
	t.Helper()
	o, err := redis.ParseURL(os.Getenv("TEST_REDIS_URL"))
	if err != nil {
		t.Fatalf("TEST_REDIS_URL: %v: run `make test`, or `make test ARGS=<packages>` for a part", err)
	}
	admin := redis.NewClient(o)
	t.Cleanup(func() { _ = admin.Close() })
	n := take(t, admin)
	if err := flush(t.Context(), *o, n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := flush(ctx, *o, n); err != nil {
			t.Error(err)
		}
		admin.Del(ctx, lock(n))
	})
	return fmt.Sprintf("redis://%s/%d", o.Addr, n)
}

func lock(n int) string { return "registrar:test:database:" + strconv.Itoa(n) }

// take reserves a number. A test binary that was killed keeps its numbers until the
// longest test time is over.
func take(t testing.TB, admin *redis.Client) int {
	t.Helper()
	for {
		for n := 1; n < 16; n++ {
			got, err := admin.SetNX(t.Context(), lock(n), t.Name(), 10*time.Minute).Result()
			if err != nil {
				t.Fatal(err)
			}
			if got {
				return n
			}
		}
		select {
		case <-t.Context().Done():
			t.Fatal("no Redis database became free")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func flush(ctx context.Context, o redis.Options, n int) error {
	o.DB = n
	rdb := redis.NewClient(&o)
	defer func() { _ = rdb.Close() }()
	return rdb.FlushDB(ctx).Err()
}
