// Values as cassandra-driver makes them: by other codecs around those of this package.

import type { Codec } from "../values/codec.js";
import type { LocalDate as OwnDate, LocalTime as OwnTime } from "../values/local.js";
import type { Duration as OwnDuration } from "../values/duration.js";
import { uuidBytes } from "../values/texts.js";
import { Types } from "../values/types.js";
import type { Decimal } from "../values/varint.js";
import {
  BigDecimal, Duration, InetAddress, Integer, LocalDate, LocalTime, Long, TimeUuid, Tuple, Uuid, Value, asBuffer, unset,
} from "./values.js";

/** `clientOptions.encoding`, as far as it is followed. */
export interface Encoding {
  readonly map?: unknown;
  readonly set?: unknown;
  readonly useBigIntAsLong?: boolean;
  readonly useBigIntAsVarint?: boolean;
  readonly copyBuffer?: boolean;
}

/** What rows inherit from. */
export class Row {
  static readonly name: string = "Row";
  [column: string]: any;

  get(column: string | number): any {
    return typeof column === "number" ? Object.values(this)[column] : this[column];
  }
  keys(): string[] {
    return Object.keys(this);
  }
  values(): any[] {
    return Object.values(this);
  }
  forEach(callback: (value: any, column: string) => void): void {
    for (const [column, value] of Object.entries(this)) callback(value, column);
  }
}

/** The codecs of one client. */
export function typesOf(encoding: Encoding = {}): Types {
  return new Types({}, (codec) => replaced(codec, encoding), Row.prototype);
}

function replaced(codec: Codec, encoding: Encoding): Codec {
  const make = madeBy(codec.type, encoding);
  const { put, get } = codec;
  const isTimestamp = codec.type === "timestamp";
  // What rows hold may be written as it is, whole collections of it too.
  const putPlain: Codec["put"] = (writer, value) => put(writer, isTimestamp && typeof value === "string" ? new Date(value) : plain(value));
  return make ? { ...codec, put: putPlain, get: (cells, at, end) => make(get(cells, at, end)) } : { ...codec, put: putPlain };
}

function plain(value: unknown): unknown {
  return value instanceof Value ? value.plain() : value;
}

/** What stands for a value of a type; undefined if it stays. */
function madeBy(type: string, encoding: Encoding): ((value: any) => unknown) | undefined {
  switch (/^\w+/.exec(type)?.[0]) {
    case "bigint":
    case "counter": return encoding.useBigIntAsLong ? undefined : (value: bigint) => Long.fromBigInt(value);
    case "varint": return encoding.useBigIntAsVarint ? undefined : (value: bigint) => new Integer(value);
    case "decimal": return (value: Decimal) => BigDecimal.fromDecimal(value);
    case "uuid": return (value: string) => new Uuid(asBuffer(uuidBytes(value)!));
    case "timeuuid": return (value: string) => new TimeUuid(asBuffer(uuidBytes(value)!));
    case "date": return (value: OwnDate) => LocalDate.fromOwn(value);
    case "time": return (value: OwnTime) => new LocalTime(value.nanoseconds);
    case "duration": return ({ months, days, nanoseconds }: OwnDuration) => new Duration(months, days, nanoseconds);
    case "inet": return (value: string) => new InetAddress(value);
    case "blob": return asBuffer;
    case "tuple": return (value: unknown[]) => Tuple.fromArray(value);
    case "set": return encoding.set ? undefined : (value: Set<unknown>) => [...value];
    case "map": return encoding.map ? undefined
      : (value: Map<unknown, unknown>) => Object.fromEntries([...value].map(([key, held]) => [String(key), held]));
    default: return undefined;
  }
}

/** Parameters as this package takes them. */
export function parameters(given: unknown): any {
  const one = (value: unknown): unknown => (value === unset ? undefined : plain(value));
  if (given === undefined || given === null) return undefined;
  return Array.isArray(given) ? given.map(one) : Object.fromEntries(Object.entries(given).map(([name, value]) => [name, one(value)]));
}
