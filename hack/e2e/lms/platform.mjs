// An LMS of LTI 1.3 whose sign-in, tokens and checks of signatures are those of oidc-provider, a certified OpenID Provider:
//
//	node platform.mjs PORT CLIENT_ID REDIRECT_URI JWKS_URI
//
// PUT /say?user=… keeps what the next messages about a user say (JSON of claims), GET /signin?user=… signs the browser in there,
// GET /heard gives what the services were sent.
import { createServer } from "node:http";
import { generateKeyPairSync } from "node:crypto";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { Provider, interactionPolicy } from "oidc-provider";

const [port, clientId, redirect, keys] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const names = "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly";
const scores = "https://purl.imsglobal.org/spec/lti-ags/scope/score";
const said = new Map();
const heard = { scores: [], choices: [], refused: [] };

const policy = interactionPolicy.base();
policy.clear();
const provider = new Provider(issuer, {
	clients: [{
		client_id: clientId, application_type: "native", redirect_uris: [redirect], jwks_uri: keys, scope: `openid ${names} ${scores}`,
		response_types: ["id_token"], grant_types: ["implicit", "client_credentials"], token_endpoint_auth_method: "private_key_jwt",
		token_endpoint_auth_signing_alg: "RS256", id_token_signed_response_alg: "RS256",
	}],
	jwks: { keys: [{ ...generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" }), kid: "lms-1", use: "sig", alg: "RS256" }] },
	responseTypes: ["id_token"],
	scopes: ["openid", names, scores],
	claims: { openid: ["sub", "email", "given_name", "family_name", ...["deployment_id", "message_type", "version", "target_link_uri", "roles", "resource_link", "context", "custom"]
		.map((c) => `https://purl.imsglobal.org/spec/lti/claim/${c}`), "https://purl.imsglobal.org/spec/lti-ags/claim/endpoint",
		"https://purl.imsglobal.org/spec/lti-nrps/claim/namesroleservice", "https://purl.imsglobal.org/spec/lti-dl/claim/deep_linking_settings"] },
	conformIdTokenClaims: false,
	extraParams: ["lti_message_hint"],
	features: { devInteractions: { enabled: false }, clientCredentials: { enabled: true }, resourceIndicators: { enabled: false } },
	interactions: { policy },
	// The provider's own calls nothing on this machine, and waits too short for a busy one.
	fetch: (url, { dispatcher, ...options }) => fetch(url, { ...options, signal: AbortSignal.timeout(30_000) }),
	cookies: { keys: ["of a test"] },
	findAccount: (_, sub) => ({ accountId: sub, claims: async () => ({ sub, ...said.get(sub) }) }),
	loadExistingGrant: async (ctx) => {
		const grant = new provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
		grant.addOIDCScope("openid");
		await grant.save();
		return grant;
	},
});
for (const event of ["grant.error", "authorization.error", "server_error"]) {
	provider.on(event, (_, e) => heard.refused.push(`${event}: ${e.message} ${e.error_description ?? e.stack} ${e.error_detail ?? ""} ${e.cause ?? ""}`));
}

const text = async (stream) => { let all = ""; for await (const part of stream) all += part; return all; };

// allowed says whether the request has a token of the provider's that is good for the scope.
async function allowed(req, scope) {
	const token = await provider.ClientCredentials.find((req.headers.authorization ?? "").replace(/^Bearer /, ""));
	return token?.scope?.split(" ").includes(scope) ?? false;
}

const answer = (res, status, body, type = "application/json") => res.writeHead(status, { "Content-Type": type }).end(JSON.stringify(body));

const routes = {
	"/ready": (_, res) => answer(res, 200, {}),
	"/heard": (_, res) => answer(res, 200, heard),
	"/say": async (req, res, url) => { said.set(url.searchParams.get("user"), JSON.parse(await text(req))); answer(res, 200, {}); },
	"/signin": async (req, res, url) => {
		const session = new provider.Session();
		session.loginAccount({ accountId: url.searchParams.get("user"), loginTs: Math.floor(Date.now() / 1000) });
		await session.save(3600);
		provider.createContext(req, res).cookies.set(provider.cookieName("session"), session.id, { httpOnly: true, overwrite: true, signed: true, sameSite: "lax" });
		answer(res, 200, {});
	},
	"/members": async (req, res) => {
		if (!await allowed(req, names)) return answer(res, 403, {});
		const members = [...said].map(([user_id, c]) => ({ user_id, status: "Active", roles: c["https://purl.imsglobal.org/spec/lti/claim/roles"],
			email: c.email, given_name: c.given_name, family_name: c.family_name }));
		answer(res, 200, { id: `${issuer}/members`, context: { id: "c-1" }, members }, "application/vnd.ims.lti-nrps.v2.membershipcontainer+json");
	},
	"/line/scores": async (req, res) => {
		if (!await allowed(req, scores)) return answer(res, 403, {});
		heard.scores.push({ type: req.headers["content-type"], ...JSON.parse(await text(req)) });
		answer(res, 200, {});
	},
	"/chosen": async (req, res) => {
		const token = new URLSearchParams(await text(req)).get("JWT");
		try {
			const { payload } = await jwtVerify(token, createRemoteJWKSet(new URL(keys)), { issuer: clientId, audience: issuer, algorithms: ["RS256"], requiredClaims: ["nonce", "iat", "exp"], maxTokenAge: "5m" });
			heard.choices.push(payload);
		} catch (e) {
			heard.refused.push(`choice: ${e}`);
		}
		answer(res, 200, {});
	},
};

const rest = provider.callback();
createServer((req, res) => {
	const url = new URL(req.url, issuer);
	const route = routes[url.pathname];
	if (!route) return rest(req, res);
	Promise.resolve(route(req, res, url)).catch((e) => { heard.refused.push(String(e.stack)); answer(res, 500, {}); });
}).listen(Number(port), "127.0.0.1");
