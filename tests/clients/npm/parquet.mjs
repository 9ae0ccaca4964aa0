// SPDX-License-Identifier: BSD-3-Clause
// parquet.mjs READER FILE [COLUMN...]: the rows of a Parquet file as a JSON array, by hyparquet or
// duckdb (@duckdb/node-api), which are in the directory NCZARRFS_NPM. 64-bit numbers are strings,
// bytes base64.
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const [reader, path, ...columns] = process.argv.slice(2)
const require = createRequire(process.env.NCZARRFS_NPM + '/package.json')

async function load(name) {
  return import(pathToFileURL(require.resolve(name)))
}

async function hyparquet() {
  const { parquetReadObjects } = await load('hyparquet')
  const { compressors } = await load('hyparquet-compressors')
  const bytes = readFileSync(path)
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength)
  return parquetReadObjects({
    file, compressors, utf8: false, columns: columns.length ? columns : undefined })
}

async function duckdb() {
  const { DuckDBInstance } = require('@duckdb/node-api')
  const connection = await (await DuckDBInstance.create()).connect()
  const name = path.replaceAll("'", "''")
  const wanted = columns.map(c => `"${c}"`).join(', ') || '* replace (base64(data) as data)'
  const result = await connection.runAndReadAll(
    `select ${wanted} from read_parquet('${name}')`)
  return result.getRowObjectsJson()
}

function plain(key, value) {
  if (typeof value === 'bigint') return value.toString()
  return value
}

const rows = await { hyparquet, duckdb }[reader]()
for (const row of rows) {
  if (row.data instanceof Uint8Array) row.data = Buffer.from(row.data).toString('base64')
}
process.stdout.write(JSON.stringify(rows, plain))
