// Package monitor serves Asynq's own web page of the queues, for looking only. It has no
// sign-in: it belongs on a private port.
package monitor

import (
	"net/http"

	"github.com/hibiken/asynqmon"
	"github.com/redis/go-redis/v9"
)

// Handler is the page under root ("/asynq"). Every request that would change something
// is answered 405. Close ends its connections.
func Handler(root string, rdb *redis.Client) *asynqmon.HTTPHandler {
	return asynqmon.New(asynqmon.Options{RootPath: root, RedisConnOpt: options{rdb}, ReadOnly: true})
}

var _ http.Handler = (*asynqmon.HTTPHandler)(nil)

// options opens a client beside rdb: the page closes its own.
type options struct{ rdb *redis.Client }

// MakeRedisClient implements asynq.RedisConnOpt.
func (o options) MakeRedisClient() any {
	c := *o.rdb.Options()
	return redis.UniversalClient(redis.NewClient(&c))
}
