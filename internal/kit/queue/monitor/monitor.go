// Package monitor serves Asynq's own web page of the queues, for looking only. It belongs
// on a private port.
package monitor

import (
	"net/http"

	"github.com/hibiken/asynqmon"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Handler is the page under root ("/asynq"). Every request that would change something
// is answered 405. Close ends its connections.
func Handler(root string, rdb redis.UniversalClient) *asynqmon.HTTPHandler {
	return asynqmon.New(asynqmon.Options{RootPath: root, RedisConnOpt: options{rdb}, ReadOnly: true})
}

// userName is the name that SignIn asks for.
const userName = "registrar"

// SignIn lets only those to h who know the password (HTTP Basic, user userName). An empty
// password lets everybody through.
func SignIn(password string, h http.Handler) http.Handler {
	if password == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, given, _ := r.BasicAuth()
		if user != userName || !seal.Equal(given, password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="Registrar queues", charset="UTF-8"`)
			http.Error(w, "Sign in as "+userName+" with ASYNQ_PASSWORD.", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

var _ http.Handler = (*asynqmon.HTTPHandler)(nil)

// options opens a client beside rdb: the page closes its own.
type options struct{ rdb redis.UniversalClient }

// MakeRedisClient implements asynq.RedisConnOpt.
func (o options) MakeRedisClient() any { return queue.Beside(o.rdb) }
