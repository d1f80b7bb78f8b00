export default {
  input: "partner.yaml",
  output: { path: "sdk", module: { extension: ".js" } },
  plugins: [{ name: "@hey-api/client-fetch", throwOnError: true }, "@hey-api/typescript", "@hey-api/sdk"],
};
